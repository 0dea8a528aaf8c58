#include "executor/copy_from.h"

#include <charconv>
#include <numeric>

#include "executor/column_buffer.h"
#include "executor/copy_rows.h"
#include "executor/row_writer.h"
#include "shm/shared_memory.h"
#include "wire/copy_format.h"

namespace sluice {
namespace {

// Beyond this much the lines of a COPY are not kept any more: errors are told without a line.
constexpr size_t kLineMapBytesMax = 64 << 20;

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

uint64_t ReadVarint(std::string_view bytes, size_t* at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = static_cast<uint8_t>(bytes[(*at)++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

}  // namespace

std::string ShownInContext(std::string_view data) {
  constexpr size_t kShownMax = 100;
  if (data.size() <= kShownMax) return std::string(data);
  size_t end = kShownMax;
  while (end > 0 && (static_cast<uint8_t>(data[end]) & 0xc0) == 0x80) end--;  // a whole character
  return std::string(data.substr(0, end)) + "...";
}

void LineMap::Add(uint64_t line, uint32_t lines) {
  if (full_) return;
  if (bytes_.size() > kLineMapBytesMax) {
    full_ = true;
    bytes_ = {};
    return;
  }
  AppendVarint(line - last_, &bytes_);
  AppendVarint(lines, &bytes_);
  last_ = line;
}

uint64_t LineMap::Find(uint64_t line) const {
  uint64_t mine = 0, theirs = 0;
  for (size_t at = 0; at < bytes_.size();) {
    mine += ReadVarint(bytes_, &at);
    theirs += ReadVarint(bytes_, &at);
    if (theirs >= line) return mine - (theirs - line);
  }
  return 0;
}

CopyFrom::CopyFrom(const CopyFromPlan& plan, const ExecutorContext& context, Format format)
    : plan_(plan),
      context_(context),
      format_(std::move(format)),
      targets_(plan.targets.size()),
      piece_bytes_(shared_memory->chunks.chunk_size_bytes) {
  state_.statement = &no_statement_;
  state_.context = &context_;
  state_.statistics = &no_statistics_;
  for (const Expr* expr : plan.defaults)
    defaults_.push_back(CompiledExpression::Compile(*expr, state_));
  for (const Expr* key : plan.keys) keys_.push_back(CompiledExpression::Compile(*key, state_));
  if (plan.where != nullptr) where_ = CompiledExpression::Compile(*plan.where, state_);
  if (!plan.even && !plan.replicated) route_ = context.partition_rule(plan.relation);
}

void CopyFrom::Open(size_t t) {
  Oid server = plan_.targets[t].server;
  context_.join_for_write(std::span(&server, 1), targets_.size() == 1);
  SideStream::Options options{StreamKind::kCopyIn, context_.connect(server), plan_.targets[t].sql,
                              TransactionOn(context_, server)};
  options.admission_timeout_us = context_.admission_timeout_us;
  targets_[t].stream = std::make_unique<SideStream>(options, context_.shared_arena);
  if (format_.binary) targets_[t].bytes = CopyBinaryHeader();
}

// "COPY t, line 3, column c: "x"" of the shard's table and lines.
void CopyFrom::Rethrow(const Error& given, const Target& target) const {
  Error error = given;
  constexpr std::string_view kCopy = "COPY ", kLine = ", line ";
  size_t line_at = error.context.find(kLine);
  if (!error.context.starts_with(kCopy) || line_at == std::string::npos) throw QueryError(error);
  size_t number_at = line_at + kLine.size();
  uint64_t line = 0;
  const char* end_of_text = error.context.data() + error.context.size();
  auto [end, failed] = std::from_chars(error.context.data() + number_at, end_of_text, line);
  uint64_t found = failed == std::errc() ? target.lines.Find(line) : 0;
  std::string rest(end, end_of_text);
  error.context = found == 0 ? fmt::format("COPY {}{}", plan_.table_name,
                                           rest.starts_with(",") ? rest : std::string())
                             : fmt::format("COPY {}{}{}{}", plan_.table_name, kLine, found, rest);
  throw QueryError(error);
}

template <typename Fn>
void CopyFrom::OnTarget(Target& target, Fn&& fn) {
  try {
    fn();
  } catch (const QueryError& e) {
    Rethrow(e.error, target);
  }
}

void CopyFrom::Send(size_t t, const Row& row, std::string_view appended) {
  Target& target = targets_[t];
  if (target.stream == nullptr) Open(t);
  // Postgres counts the line ends in a quoted field only once it has seen a line's end.
  target.lines.Add(row.line, target.lines.empty() ? 1 : row.lines);
  target.bytes.append(row.bytes).append(appended);
  if (row.terminated) target.bytes.append(format_.line_end);
  if (target.bytes.size() < piece_bytes_) return;
  OnTarget(target, [&] { target.stream->Put(target.bytes); });
  target.bytes.clear();
}

void CopyFrom::Route(const Batch& batch) {
  targets_of_rows_.resize(batch.rows);
  if (!route_) {
    auto target = static_cast<uint32_t>(next_even_++ % targets_.size());
    std::fill(targets_of_rows_.begin(), targets_of_rows_.end(), target);
    return;
  }
  key_columns_.resize(keys_.size());
  for (size_t i = 0; i < keys_.size(); i++)
    key_columns_[i] = keys_[i]->Evaluate(batch, nullptr, batch.rows, &arena_);
  if (batch.rows > 0) route_({batch.rows, key_columns_}, targets_of_rows_);
}

// Which of the rows it was that has no place.
void CopyFrom::ThrowForRow(const Batch& batch, std::span<const Row> rows, Error error) {
  std::vector<Oid> types;
  for (const Column& column : batch.columns) types.push_back(column.type);
  for (uint32_t i = 0; i < batch.rows; i++) {
    BatchBuffer one(types);
    for (size_t c = 0; c < types.size(); c++) GatherColumn(batch.columns[c], &i, 1, &one[c]);
    Batch row;
    one.Show(1, &row);
    try {
      Route(row);
    } catch (const QueryError& e) {
      const Row& sent = rows[selected_[i]];
      error = e.error;
      error.context = fmt::format("COPY {}, line {}", plan_.table_name, sent.line);
      if (!format_.binary) error.context += ": \"" + ShownInContext(sent.bytes) + "\"";
      break;
    }
  }
  throw QueryError(error);
}

void CopyFrom::Add(const Batch& inputs, std::span<const Row> rows) {
  CheckForInterrupts();
  arena_.Reset();
  row_columns_.assign(inputs.columns.begin(), inputs.columns.end());
  for (auto& expr : defaults_)
    row_columns_.push_back(expr->Evaluate({rows.size(), {}}, nullptr, rows.size(), &arena_));
  Batch batch{rows.size(), row_columns_};
  selected_.resize(rows.size());
  std::iota(selected_.begin(), selected_.end(), 0);
  std::optional<BatchBuffer> kept;
  if (where_ != nullptr) {
    // The others go nowhere: nobody asks where they belong.
    selected_.resize(SelectRows(*where_, batch, nullptr, rows.size(), &arena_, selected_.data()));
    std::vector<Oid> types;
    for (const Column& column : row_columns_) types.push_back(column.type);
    kept.emplace(types);
    for (size_t i = 0; i < row_columns_.size(); i++)
      GatherColumn(row_columns_[i], selected_.data(), selected_.size(), &(*kept)[i]);
    kept->Show(selected_.size(), &batch);
  }
  try {
    Route(batch);
  } catch (const QueryError& e) {
    ThrowForRow(batch, rows, e.error);
  }
  std::span<const Column> values = std::span(row_columns_).subspan(inputs.columns.size());
  std::string appended;
  for (size_t i = 0; i < selected_.size(); i++) {
    uint32_t row = selected_[i];
    if (!values.empty()) {
      appended.clear();
      format_.append(values, row, &appended);
    }
    if (!plan_.replicated) {
      Send(targets_of_rows_[i], rows[row], appended);
      continue;
    }
    for (size_t t = 0; t < targets_.size(); t++) Send(t, rows[row], appended);
  }
}

uint64_t CopyFrom::Finish() {
  for (Target& target : targets_) {
    if (target.stream == nullptr) continue;
    if (format_.binary) target.bytes.append(kCopyBinaryTrailer);
    OnTarget(target, [&] {
      target.stream->Put(target.bytes);
      target.stream->EndInput();
    });
  }
  uint64_t count = 0;
  for (Target& target : targets_) {
    if (target.stream == nullptr) continue;
    OnTarget(target, [&] { target.stream->Finish(WaitEvent::kCopyInQueue); });
    uint64_t rows = RowsOfTag(target.stream->stream());
    count = plan_.replicated ? rows : count + rows;
  }
  return count;
}

}  // namespace sluice
