// COPY (table or query) TO STDOUT.
#include <pg_query/pg_query.pb-c.h>

#include "catalog/quote.h"
#include "postmaster/copy_sink.h"
#include "postmaster/session.h"
#include "postmaster/setting_checks.h"
#include "types/codec.h"

namespace sluice {
namespace {

std::string OptionText(const PgQuery__DefElem& option) {
  if (option.arg == nullptr) return "true";
  switch (option.arg->node_case) {
    case PG_QUERY__NODE__NODE_STRING:
      return option.arg->string->sval;
    case PG_QUERY__NODE__NODE_INTEGER:
      return std::to_string(option.arg->integer->ival);
    case PG_QUERY__NODE__NODE_FLOAT:
      return option.arg->float_->fval;
    case PG_QUERY__NODE__NODE_BOOLEAN:
      return option.arg->boolean->boolval ? "true" : "false";
    default:
      Throw(sqlstate::kSyntaxError, "option \"{}\" not recognized", option.defname);
  }
}

char OneByte(const std::string& text, const char* what) {
  if (text.size() != 1) Refuse("COPY {} must be a single one-byte character", what);
  return text[0];
}

// The columns that FORCE_QUOTE names: a list, or * for all.
std::vector<bool> ForceQuote(const PgQuery__DefElem& option,
                             std::span<const ColumnDescription> columns) {
  if (option.arg != nullptr && option.arg->node_case == PG_QUERY__NODE__NODE_A_STAR)
    return std::vector<bool>(columns.size(), true);
  if (option.arg == nullptr || option.arg->node_case != PG_QUERY__NODE__NODE_LIST)
    Throw(sqlstate::kInvalidParameterValue,
          "argument to option \"{}\" must be a list of column names", option.defname);
  std::vector<bool> force(columns.size(), false);
  const PgQuery__List& list = *option.arg->list;
  for (size_t i = 0; i < list.n_items; i++) {
    std::string name = list.items[i]->string->sval;
    auto found = std::find_if(columns.begin(), columns.end(),
                              [&](const ColumnDescription& column) { return column.name == name; });
    if (found == columns.end())
      Throw(sqlstate::kUndefinedColumn, "column \"{}\" does not exist", name);
    force[static_cast<size_t>(found - columns.begin())] = true;
  }
  return force;
}

void CheckOptions(const CopyOptions& options, bool delimiter_given, bool quote_given,
                  bool escape_given) {
  bool csv = options.format == CopyFormat::kCsv;
  if (options.format == CopyFormat::kBinary) {
    if (delimiter_given) Throw(sqlstate::kSyntaxError, "cannot specify DELIMITER in BINARY mode");
    if (options.header) Refuse("cannot specify HEADER in BINARY mode");
  }
  if (options.delimiter == '\n' || options.delimiter == '\r')
    Throw(sqlstate::kInvalidParameterValue, "COPY delimiter cannot be newline or carriage return");
  if (options.null_text.find_first_of("\r\n") != std::string::npos)
    Throw(sqlstate::kInvalidParameterValue,
          "COPY null representation cannot use newline or carriage return");
  if (!csv && std::string_view("\\.abcdefghijklmnopqrstuvwxyz0123456789").find(options.delimiter) !=
                  std::string_view::npos)
    Throw(sqlstate::kInvalidParameterValue, "COPY delimiter cannot be \"{}\"", options.delimiter);
  if (!csv && quote_given) Refuse("COPY quote available only in CSV mode");
  if (!csv && escape_given) Refuse("COPY escape available only in CSV mode");
  if (!csv && !options.force_quote.empty()) Refuse("COPY force quote available only in CSV mode");
  if (csv && options.delimiter == options.quote)
    Throw(sqlstate::kInvalidParameterValue, "COPY delimiter and quote must be different");
  if (options.format != CopyFormat::kBinary &&
      options.null_text.find(options.delimiter) != std::string::npos)
    Refuse("COPY delimiter must not appear in the NULL specification");
  if (csv && options.null_text.find(options.quote) != std::string::npos)
    Refuse("CSV quote character must not appear in the NULL specification");
}

CopyOptions ReadOptions(const PgQuery__CopyStmt& command,
                        std::span<const ColumnDescription> columns) {
  CopyOptions options;
  std::optional<std::string> delimiter, null_text, quote, escape;
  for (size_t i = 0; i < command.n_options; i++) {
    const PgQuery__DefElem& option = *command.options[i]->def_elem;
    std::string_view name = option.defname;
    if (name == "format") {
      std::string format = OptionText(option);
      if (format == "text")
        options.format = CopyFormat::kText;
      else if (format == "csv")
        options.format = CopyFormat::kCsv;
      else if (format == "binary")
        options.format = CopyFormat::kBinary;
      else
        Throw(sqlstate::kInvalidParameterValue, "COPY format \"{}\" not recognized", format);
    } else if (name == "delimiter") {
      delimiter = OptionText(option);
    } else if (name == "null") {
      null_text = OptionText(option);
    } else if (name == "header") {
      auto header = ParseBoolean(OptionText(option));
      if (!header)
        Throw(sqlstate::kInvalidParameterValue, "header requires a Boolean value or \"match\"");
      options.header = *header;
    } else if (name == "quote") {
      quote = OptionText(option);
    } else if (name == "escape") {
      escape = OptionText(option);
    } else if (name == "force_quote") {
      options.force_quote = ForceQuote(option, columns);
    } else if (name == "encoding") {
      if (!CheckSetting("client_encoding", OptionText(option)))
        Throw(sqlstate::kInvalidParameterValue,
              "argument to option \"encoding\" must be a valid encoding name");
    } else if (name == "freeze" || name == "force_not_null" || name == "force_null") {
      Refuse("COPY {} only available using COPY FROM", name);
    } else {
      Throw(sqlstate::kSyntaxError, "option \"{}\" not recognized", name);
    }
  }
  bool csv = options.format == CopyFormat::kCsv;
  if (csv) options.delimiter = ',', options.null_text = "";
  if (options.format == CopyFormat::kBinary && null_text)
    Throw(sqlstate::kSyntaxError, "cannot specify NULL in BINARY mode");
  if (delimiter) options.delimiter = OneByte(*delimiter, "delimiter");
  if (null_text) options.null_text = *null_text;
  if (quote) options.quote = OneByte(*quote, "quote");
  options.escape = escape ? OneByte(*escape, "escape") : options.quote;
  CheckOptions(options, delimiter.has_value(), quote.has_value(), escape.has_value());
  return options;
}

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
  if (command.is_from) Refuse("COPY FROM is not supported");
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
  CopyOptions copy = ReadOptions(command, query->columns);

  Portal portal;
  portal.statement = query;
  portal.copy_options = RemoteOptions(copy);
  if (copy.format == CopyFormat::kBinary) portal.formats = {1};
  StartPortal(&portal);
  CopySink sink(&client_, query->columns.size(), copy, session_settings_);
  std::vector<std::string_view> names;
  for (const ColumnDescription& column : query->columns) names.push_back(column.name);
  sink.Begin(names);
  uint64_t rows = portal.running->Run(&sink, 0);
  portal.running->Finish();
  sink.End();
  return fmt::format("COPY {}", rows - sink.rowless_messages());
}

}  // namespace sluice
