#include "executor/row_writer.h"

#include <charconv>

#include "common/bytes.h"
#include "executor/plan_streams.h"
#include "executor/remote_end.h"
#include "types/codec.h"

namespace sluice {

uint64_t RowsOfTag(const Stream& stream) {
  return RowsOfTag(stream.command_tag, stream.connection->server_name);
}

uint64_t RowsOfTag(std::string_view tag, std::string_view server_name) {
  size_t space = tag.rfind(' ');
  uint64_t rows = 0;
  std::string_view digits = space == std::string_view::npos ? tag : tag.substr(space + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rows);
  if (error != std::errc() || end != digits.data() + digits.size())
    Throw(sqlstate::kProtocolViolation, "server \"{}\" ended a write with the tag \"{}\"",
          server_name, tag);
  return rows;
}

RowWriter::RowWriter(const ModifyPlan& plan, ExecutionState& state) : plan_(plan), state_(state) {}

RowWriter::~RowWriter() = default;

size_t RowWriter::RowsMax(size_t columns) {
  constexpr size_t kParamsMax = 30'000, kRowsMax = 1000;
  return std::clamp<size_t>(kParamsMax / std::max<size_t>(1, columns), 1, kRowsMax);
}

// VALUES ($1::integer, $2::text), ($3, $4), …: the first row tells the types.
std::string RowWriter::Text(const WriteStatement& statement) const {
  std::string text(statement.head);
  size_t number = statement.place->params.size();
  bool any = statement.numbered || !statement.columns.empty();
  for (size_t r = 0; any && r < statement.rows.size(); r++) {
    text += r == 0 ? "(" : ", (";
    bool first = true;
    auto add = [&](std::string_view type) {
      text += fmt::format("{}${}", first ? "" : ", ", ++number);
      if (r == 0) text.append("::").append(type);
      first = false;
    };
    if (statement.numbered) {
      add("int4");
      add("tid");
      add("oid");
    }
    for (std::string_view type : statement.types) add(type);
    text += ")";
  }
  text += statement.tail;
  return text;
}

namespace {

StreamParam ParamOf(const Column& column, size_t row, Arena* arena, std::string* scratch) {
  StreamParam param{};
  // Types of users and extensions have other oids on the shards: the text's casts tell them.
  param.type = column.type < kFirstUserOid ? column.type : 0;
  param.is_null = column.IsNull(row);
  param.binary = HasBinaryCodec(column.type);
  if (param.is_null) return param;
  if (!param.binary) {
    param.value = arena->CopyString(column.At<std::string_view>(row));
    return param;
  }
  scratch->clear();
  AppendBinary(column, row, scratch);
  param.value = arena->CopyString(*scratch);
  return param;
}

StreamParam NumberParam(uint32_t number, Arena* arena) {
  char bytes[4];
  StoreBig(bytes, number);
  return {kInt4Oid, false, true, arena->CopyString({bytes, sizeof bytes})};
}

}  // namespace

std::span<const StreamParam> RowWriter::Params(const Batch& batch, const WriteStatement& statement,
                                               Arena* arena) const {
  constexpr size_t kCtid = 1, kTableOid = 2;  // of the child's columns
  std::vector<StreamParam> params;
  for (const StreamParam& param : MakeStreamParams(statement.place->params, state_))
    params.push_back(param);
  std::string scratch;
  for (uint32_t row : statement.rows) {
    if (statement.numbered) {
      params.push_back(NumberParam(row, arena));
      params.push_back(ParamOf(batch.columns[kCtid], row, arena, &scratch));
      params.push_back(ParamOf(batch.columns[kTableOid], row, arena, &scratch));
    }
    for (int column : statement.columns)
      params.push_back(ParamOf(batch.columns[static_cast<size_t>(column)], row, arena, &scratch));
  }
  return arena->CopyArray(params);
}

std::vector<uint64_t> RowWriter::Run(const Batch& batch, std::span<const WriteStatement> statements,
                                     bool with_number, bool with_output, const Returned& returned) {
  // What the statements need lives as long as they run.
  SharedBlocks blocks;
  Arena arena(blocks, 16 * 1024);
  ForeignScanPlan rows{};
  rows.kind = PlanKind::kForeignScan;
  std::vector<OutputColumn> output;
  std::vector<uint8_t> formats;
  if (with_number) {
    output.push_back({"n", kInt4Oid, -1, kInvalidOid});
    formats.push_back(1);
  }
  for (size_t i = 0; with_output && i < plan_.shard_output.size(); i++) {
    output.push_back(plan_.shard_output[i]);
    formats.push_back(plan_.binary[i]);
  }
  auto binary = arena.NewArray<bool>(formats.size());
  for (size_t i = 0; i < binary.size(); i++) binary[i] = formats[i] != 0;
  rows.output = arena.CopyArray(output);
  rows.binary = binary;

  std::vector<std::unique_ptr<SideStream>> streams;
  for (const WriteStatement& statement : statements) {
    rows.server = statement.place->server;
    SideStream::Options options{
        StreamKind::kQuery, state_.context->connect(statement.place->server),
        arena.CopyString(Text(statement)), TransactionOn(*state_.context, statement.place->server)};
    options.params = Params(batch, statement, &arena);
    options.result_formats = MakeResultFormats(rows.binary, &arena);
    options.prepare = statement.rows.size() == 1;
    options.admission_timeout_us = state_.context->admission_timeout_us;
    streams.push_back(std::make_unique<SideStream>(options, &arena));
  }
  std::vector<uint64_t> written;
  SliceReader reader(rows.output, *state_.context->settings);
  for (size_t i = 0; i < streams.size(); i++) {
    Slice slice;
    while (streams[i]->Next(&slice, WaitEvent::kAppendReady)) {
      reader.Start(slice, &rows);
      Batch answer;
      while (reader.Next(&answer)) returned(i, answer);
      reader.Release();
    }
    written.push_back(RowsOfTag(streams[i]->stream()));
  }
  return written;
}

}  // namespace sluice
