// COPY (table or query) TO STDOUT.
#include <pg_query/pg_query.pb-c.h>

#include "catalog/quote.h"
#include "postmaster/copy_options.h"
#include "postmaster/copy_sink.h"
#include "postmaster/session.h"
#include "types/codec.h"

namespace sluice {
namespace {

// What makes a shard send the rows as the client wants them; the header line is written here, once.
// Empty where the shard's column names would be needed, which may be others.
std::string RemoteOptions(const CopyOptions& options) {
  if (options.format == CopyFormat::kBinary) return "FORMAT binary";
  std::string text =
      fmt::format("DELIMITER {}, NULL {}", QuoteLiteral(std::string(1, options.delimiter)),
                  QuoteLiteral(options.null_text));
  if (options.format == CopyFormat::kText) return text;
  text +=
      fmt::format(", FORMAT csv, QUOTE {}, ESCAPE {}", QuoteLiteral(std::string(1, options.quote)),
                  QuoteLiteral(std::string(1, options.escape)));
  const std::vector<bool>& force = options.force_quote;
  if (std::find(force.begin(), force.end(), true) == force.end()) return text;
  bool all = std::find(force.begin(), force.end(), false) == force.end();
  return all ? text + ", FORCE_QUOTE *" : "";
}

// COPY of a table is COPY of a SELECT of its columns, children included.
std::string SelectFor(const PgQuery__CopyStmt& command) {
  std::string columns;
  for (size_t i = 0; i < command.n_attlist; i++)
    columns += (i == 0 ? "" : ", ") + QuoteIdentifier(command.attlist[i]->string->sval);
  std::string table = QuoteIdentifier(command.relation->relname);
  std::string_view schema =
      command.relation->schemaname == nullptr ? "" : command.relation->schemaname;
  if (!schema.empty()) table = QuoteIdentifier(std::string(schema)) + "." + table;
  return fmt::format("SELECT {} FROM {}", columns.empty() ? "*" : columns, table);
}

}  // namespace

std::string Session::RunCopy(const Statement& statement) {
  const PgQuery__CopyStmt& command = *statement.raw->node->copy_stmt;
  if (command.is_from) return RunCopyFrom(statement);
  if (command.is_program) Refuse("COPY TO PROGRAM is not supported");
  if (command.filename != nullptr && *command.filename != 0)
    Refuse("COPY TO a file is not supported");
  std::shared_ptr<Statement> query;
  if (command.query != nullptr) {
    query = MakeStatement(statement.parsed, *statement.raw, command.query);
    if (!query->is_query) Refuse("COPY of {} is not supported", CommandName(*query->raw));
  } else {
    auto parsed = std::make_shared<const ParsedSql>(ParseSql(SelectFor(command)));
    query = MakeStatement(parsed, parsed->statements()[0], parsed->statements()[0].node);
  }
  Analyze(query.get());
  if (!query->returns_rows())
    Throw(sqlstate::kFeatureNotSupported, "COPY query must have a RETURNING clause");
  std::vector<std::string> names;
  for (const ColumnDescription& column : query->columns) names.push_back(column.name);
  CopyOptions copy = ReadCopyOptions(command, names);

  Portal portal;
  portal.statement = query;
  portal.copy_options = RemoteOptions(copy);
  if (copy.format == CopyFormat::kBinary) portal.formats = {1};
  StartPortal(&portal);
  CopySink sink(&client_, query->columns.size(), copy, session_settings_);
  sink.Begin(std::vector<std::string_view>(names.begin(), names.end()));
  uint64_t rows = portal.running->Run(&sink, 0);
  portal.running->Finish();
  sink.End();
  return fmt::format("COPY {}", rows - sink.rowless_messages());
}

}  // namespace sluice
