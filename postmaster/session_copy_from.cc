// COPY … FROM STDIN: the client's bytes → rows → the shards where they belong.
#include <pg_query/pg_query.pb-c.h>

#include "catalog/quote.h"
#include "executor/column_buffer.h"
#include "executor/copy_from.h"
#include "executor/copy_rows.h"
#include "parser/analyze.h"
#include "postmaster/copy_options.h"
#include "postmaster/fatal_error.h"
#include "postmaster/session.h"
#include "types/codec.h"
#include "wire/copy_parse.h"

namespace sluice {
namespace {

constexpr SqlState kBadCopyFileFormat = MakeSqlState("22P04");

std::string TableName(const PgQuery__RangeVar& var) {
  std::string table = QuoteIdentifier(var.relname);
  std::string_view schema = var.schemaname == nullptr ? "" : var.schemaname;
  return schema.empty() ? table : QuoteIdentifier(std::string(schema)) + "." + table;
}

// An INSERT of the columns that are sent: its analysis finds the table and the columns, and says
// what the others get.
std::string InsertFor(const PgQuery__CopyStmt& command, const std::vector<std::string>& columns) {
  std::string names, values;
  for (const std::string& column : columns) {
    names += (names.empty() ? "" : ", ") + QuoteIdentifier(column);
    values += values.empty() ? "NULL" : ", NULL";
  }
  std::string table = TableName(*command.relation);
  if (columns.empty()) return fmt::format("INSERT INTO {} DEFAULT VALUES", table);
  return fmt::format("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})", table, names,
                     values);
}

// What an INSERT would be refused for too, in other words.
void RequireCopyTarget(const Catalog& catalog, const std::vector<std::string>& search_path,
                       const PgQuery__RangeVar& target) {
  bool qualified = target.schemaname != nullptr && *target.schemaname != 0;
  const Relation* table = qualified ? catalog.FindRelation(target.schemaname, target.relname)
                                    : catalog.FindRelation(search_path, target.relname);
  if (table != nullptr && table->kind == RelationKind::kMaterializedView)
    Throw(sqlstate::kWrongObjectType, "cannot copy to materialized view \"{}\"", target.relname);
}

// How a shard is to read the lines; no header is sent on.
std::string ShardOptions(const CopyOptions& options, std::span<const std::string> names) {
  if (options.format == CopyFormat::kBinary) return "FORMAT binary";
  auto quote = [](char c) { return QuoteLiteral(std::string(1, c)); };
  std::string text = fmt::format("FORMAT {}, DELIMITER {}, NULL {}",
                                 options.format == CopyFormat::kCsv ? "csv" : "text",
                                 quote(options.delimiter), QuoteLiteral(options.null_text));
  if (options.format == CopyFormat::kText) return text;
  text += fmt::format(", QUOTE {}, ESCAPE {}", quote(options.quote), quote(options.escape));
  auto list = [&](const char* name, const std::vector<bool>& flags) {
    std::string columns;
    for (size_t i = 0; i < flags.size(); i++)
      if (flags[i]) columns += (columns.empty() ? "" : ", ") + names[i];
    if (!columns.empty()) text += fmt::format(", {} ({})", name, columns);
  };
  list("FORCE_NOT_NULL", options.force_not_null);
  list("FORCE_NULL", options.force_null);
  return text;
}

// The fields that the plan needs, as columns, for as many rows as are handed on at once.
class CopyReader {
 public:
  CopyReader(const CopyFromPlan& plan, const CopyOptions& options, const SessionSettings& settings,
             CopyFrom* to)
      : plan_(plan),
        options_(options),
        settings_(settings),
        to_(to),
        lines_(options),
        inputs_(plan.inputs) {
    header_wanted_ = options.header;
  }

  void Add(std::string_view bytes) {
    if (options_.format == CopyFormat::kBinary) {
      tuples_.Add(bytes);
      std::string_view tuple;
      while (tuples_.Next(&tuple)) AddTuple(tuple);
    } else {
      lines_.Add(bytes);
      TakeLines();
    }
    Flush();  // the rows are views of what the next bytes overwrite
  }

  void End() {
    if (options_.format == CopyFormat::kBinary) return tuples_.CheckEnd();
    lines_.End();
    TakeLines();
    Flush();
  }

 private:
  void TakeLines() {
    std::string_view line;
    for (;;) {
      try {
        if (!lines_.Next(&line)) return;
      } catch (const QueryError& e) {
        ThrowAt(e.error, lines_.line_number() + 1, {});
      }
      if (header_wanted_) {
        header_wanted_ = false;
        try {
          CheckHeader(line);
        } catch (const QueryError& e) {
          ThrowAt(e.error, lines_.line_number(), fmt::format(": \"{}\"", ShownInContext(line)));
        }
        continue;
      }
      AddLine(line);
    }
  }

  [[noreturn]] void ThrowAt(Error error, uint64_t line, const std::string& more) const {
    error.context = fmt::format("COPY {}, line {}{}", plan_.table_name, line, more);
    throw QueryError(error);
  }

  void CheckHeader(std::string_view line) const {
    if (!options_.header_match) return;
    std::vector<int> all(plan_.field_names.size());
    for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int>(i);
    std::vector<std::optional<std::string_view>> fields;
    std::vector<std::string> storage;
    size_t found = CopyFields(line, options_, all, &fields, &storage);
    if (found < all.size())
      Throw(kBadCopyFileFormat, "wrong number of fields in header line: got {}, expected {}", found,
            all.size());
    for (size_t i = 0; i < all.size(); i++)
      if (!fields[i] || *fields[i] != plan_.field_names[i])
        Throw(kBadCopyFileFormat,
              "column name mismatch in header line field {}: got \"{}\", expected \"{}\"", i + 1,
              fields[i].value_or(options_.null_text), plan_.field_names[i]);
  }

  void AddLine(std::string_view line) {
    size_t found = 0;
    if (!plan_.fields.empty()) {
      try {
        found = CopyFields(line, options_, plan_.fields, &fields_, &storage_);
      } catch (const QueryError& e) {
        ThrowAt(e.error, lines_.line_number(), fmt::format(": \"{}\"", ShownInContext(line)));
      }
      if (found < plan_.fields.size())
        ThrowAt(MakeError(kBadCopyFileFormat, "missing data for column \"{}\"",
                          plan_.inputs[found].name),
                lines_.line_number(), fmt::format(": \"{}\"", ShownInContext(line)));
    }
    for (size_t i = 0; i < found; i++) {
      try {
        SetText(i, fields_[i]);
      } catch (const QueryError& e) {
        ThrowAt(
            e.error, lines_.line_number(),
            fmt::format(", column {}: \"{}\"", plan_.inputs[i].name, ShownInContext(*fields_[i])));
      }
    }
    // All line ends that are left in it are in quotes.
    auto lines =
        options_.format == CopyFormat::kCsv ? std::count(line.begin(), line.end(), '\n') : 0;
    Push({line, lines_.line_number(), static_cast<uint32_t>(1 + lines), lines_.terminated()});
  }

  void AddTuple(std::string_view tuple) {
    row_number_++;
    auto count = static_cast<size_t>(LoadBig<int16_t>(tuple.data()));
    if (count != plan_.field_names.size())
      ThrowAt(MakeError(kBadCopyFileFormat, "row field count is {}, expected {}", count,
                        plan_.field_names.size()),
              row_number_, "");
    size_t at = 2, next = 0;
    for (size_t i = 0; i < count && next < plan_.fields.size(); i++) {
      auto length = LoadBig<int32_t>(tuple.data() + at);
      at += 4;
      std::string_view value = tuple.substr(at, static_cast<size_t>(std::max(length, 0)));
      at += value.size();
      if (static_cast<int>(i) != plan_.fields[next]) continue;
      ColumnBuffer& column = inputs_[next];
      try {
        if (length < 0)
          column.Nulls()[rows_.size()] = 1;
        else if (HasBinaryCodec(column.column.type))
          DecodeBinaryValue(column.column.type, value, &column.column, rows_.size());
        else
          column.column.Data<std::string_view>()[rows_.size()] = value;
      } catch (const QueryError& e) {
        ThrowAt(e.error, row_number_, fmt::format(", column {}", plan_.inputs[next].name));
      }
      next++;
    }
    Push({WithDefaultsCounted(tuple), row_number_, 1});
  }

  // With values behind it that were not sent the row has more fields.
  std::string_view WithDefaultsCounted(std::string_view tuple) {
    if (plan_.defaults.empty()) return tuple;
    char* copy = const_cast<char*>(arena_.CopyString(tuple).data());
    StoreBig(copy, static_cast<int16_t>(LoadBig<int16_t>(copy) +
                                        static_cast<int16_t>(plan_.defaults.size())));
    return {copy, tuple.size()};
  }

  void SetText(size_t i, std::optional<std::string_view> text) {
    Column& column = inputs_[i].column;
    size_t row = rows_.size();
    if (!text) {
      inputs_[i].Nulls()[row] = 1;
    } else if (!HasBinaryCodec(column.type)) {
      column.Data<std::string_view>()[row] = arena_.CopyString(*text);
    } else {
      DecodeBinaryValue(column.type,
                        ParseText(column.type, plan_.inputs[i].typmod, *text, settings_, &arena_),
                        &column, row);
    }
  }

  void Push(const CopyFrom::Row& row) {
    rows_.push_back(row);
    if (rows_.size() == kBatchRows) Flush();
  }

  void Flush() {
    if (rows_.empty()) return;
    Batch batch;
    inputs_.Show(rows_.size(), &batch);
    to_->Add(batch, rows_);
    rows_.clear();
    inputs_.Clear();
    arena_.Reset();
  }

  const CopyFromPlan& plan_;
  const CopyOptions& options_;
  const SessionSettings& settings_;
  CopyFrom* to_;
  CopyLines lines_;
  CopyTuples tuples_;
  BatchBuffer inputs_;
  bool header_wanted_ = false;
  uint64_t row_number_ = 0;  // binary
  std::vector<CopyFrom::Row> rows_;
  std::vector<std::optional<std::string_view>> fields_;
  std::vector<std::string> storage_;
  Arena arena_;
};

CopyFrom::Format FormatFor(const CopyOptions& options, const SessionSettings& settings) {
  CopyFrom::Format format;
  format.binary = options.format == CopyFormat::kBinary;
  if (format.binary) {
    format.line_end = "";
    format.append = [](std::span<const Column> values, size_t row, std::string* out) {
      std::string whole;
      AppendCopyBinaryRow(values, row, &whole);
      out->append(whole, sizeof(int16_t));  // the row has its field count
    };
    return format;
  }
  format.append = [&](std::span<const Column> values, size_t row, std::string* out) {
    std::string text;
    for (const Column& value : values) {
      out->push_back(options.delimiter);
      if (value.IsNull(row)) {
        out->append(options.null_text);
        continue;
      }
      text.clear();
      if (HasBinaryCodec(value.type))
        AppendText(value, row, settings, &text);
      else
        text = value.At<std::string_view>(row);
      if (options.format == CopyFormat::kCsv)
        AppendCopyCsv(text, false, options, out);
      else
        AppendCopyText(text, options, out);
    }
  };
  return format;
}

}  // namespace

bool Session::ReadCopyData(std::string_view* bytes) {
  client_.Flush();
  for (;;) {
    CheckForInterrupts();
    ResetLatch(&my_proc->latch);
    std::optional<MessageReader::Message> message;
    try {
      message = client_.TryTake(false);
    } catch (const QueryError& e) {
      throw FatalError{e.error};  // where the next message begins is lost
    }
    if (!message) {
      client_.WaitForInput(-1);
      continue;
    }
    switch (message->type) {
      case 'd':
        *bytes = message->body;
        return true;
      case 'c':
        return false;
      case 'f': {
        BodyReader body(message->body);
        Throw(sqlstate::kQueryCanceled, "COPY from stdin failed: {}", body.CString());
      }
      case 'H':
      case 'S':
        continue;  // of a client that sends them whatever it has asked for
      case 'X':
        throw ClientGone{};
      default:
        throw FatalError{MakeError(sqlstate::kProtocolViolation,
                                   "unexpected message type 0x{:02X} during COPY from stdin",
                                   static_cast<unsigned>(message->type))};
    }
  }
}

std::string Session::RunCopyFrom(const Statement& statement) {
  const PgQuery__CopyStmt& command = *statement.raw->node->copy_stmt;
  if (command.is_program) Refuse("COPY FROM PROGRAM is not supported");
  if (command.filename != nullptr && *command.filename != 0)
    Refuse("COPY FROM a file is not supported");
  if (settings_.Boolean("transaction_read_only"))
    Throw(sqlstate::kReadOnlySqlTransaction, "cannot execute COPY FROM in a read-only transaction");
  RequireCopyTarget(*catalog_, SearchPath(settings_, current_user()), *command.relation);
  // Without a list of columns the table says which there are.
  std::vector<std::string> names;
  for (size_t i = 0; i < command.n_attlist; i++) names.push_back(command.attlist[i]->string->sval);
  Arena arena;
  auto analyse = [&](const std::vector<std::string>& columns) {
    auto parsed = std::make_shared<const ParsedSql>(ParseSql(InsertFor(command, columns)));
    auto insert = MakeStatement(parsed, parsed->statements()[0], parsed->statements()[0].node);
    std::vector<Oid> types;
    return std::pair(parsed, AnalyzeIn(&arena, *insert, &types));
  };
  auto [parsed, insert] = analyse(names);
  const Relation& table = *insert->rels[static_cast<size_t>(insert->modification->target)].table;
  if (names.empty()) {
    for (const ColumnInfo& column : table.columns)
      if (!column.generated) names.push_back(column.name);
    std::tie(parsed, insert) = analyse(names);
  }
  size_t column_count = names.size();
  CopyOptions options = ReadCopyOptions(command, names, table.name);
  options.single_column = false;

  CopyFromRequest request{insert, column_count, nullptr, [&](std::span<const std::string> remote) {
                            return ShardOptions(options, remote);
                          }};
  if (command.where_clause != nullptr) {
    std::vector<Oid> no_types;
    AnalyzeContext context{catalog_.get(), &session_settings_, SearchPath(settings_, user_),
                           user_,          database_,          &arena,
                           &no_types};
    request.where =
        AnalyzeCopyWhere(command.where_clause, &table, statement.parsed->text(), context);
  }
  const CopyFromPlan* plan = nullptr;
  QuerySession session = MakeQuerySession();
  QueryOptions query_options;
  query_options.text = statement.text();
  RunningQuery running(
      session,
      [&](Arena* shared) {
        PlannerSettings planner = PlannerSettingsOf(settings_);
        plan =
            PlanCopyFrom(request, {catalog_.get(), &session_settings_, &planner, shared, {}, {}});
        return shared->New<PlannedStatement>();
      },
      query_options);
  CopyFrom copy(*plan, running.context(), FormatFor(options, session_settings_));
  CopyReader reader(*plan, options, session_settings_, &copy);

  bool binary = options.format == CopyFormat::kBinary;
  MessageWriter message(client_.out());
  message.Begin('G');
  message.Int<char>(binary ? 1 : 0);
  message.Int<int16_t>(static_cast<int16_t>(column_count));
  for (size_t i = 0; i < column_count; i++) message.Int<int16_t>(binary ? 1 : 0);
  message.End();
  std::string_view bytes;
  while (ReadCopyData(&bytes)) reader.Add(bytes);
  reader.End();
  return fmt::format("COPY {}", copy.Finish());
}

}  // namespace sluice
