#include "postmaster/copy_options.h"

#include <pg_query/pg_query.pb-c.h>
#include <strings.h>

#include "common/error.h"
#include "postmaster/setting_checks.h"

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

// The columns that FORCE_QUOTE and the like name: a list, or * for all.
std::vector<bool> NamedColumns(const PgQuery__DefElem& option, std::span<const std::string> columns,
                               std::string_view table) {
  if (std::string_view(option.defname) == "force_quote" && option.arg != nullptr &&
      option.arg->node_case == PG_QUERY__NODE__NODE_A_STAR)
    return std::vector<bool>(columns.size(), true);
  if (option.arg == nullptr || option.arg->node_case != PG_QUERY__NODE__NODE_LIST)
    Throw(sqlstate::kInvalidParameterValue,
          "argument to option \"{}\" must be a list of column names", option.defname);
  std::vector<bool> force(columns.size(), false);
  const PgQuery__List& list = *option.arg->list;
  for (size_t i = 0; i < list.n_items; i++) {
    std::string name = list.items[i]->string->sval;
    auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end())
      Throw(sqlstate::kUndefinedColumn, "column \"{}\"{} does not exist", name,
            table.empty() ? "" : fmt::format(" of relation \"{}\"", table));
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
  if (!csv && !options.force_not_null.empty())
    Refuse("COPY force not null available only in CSV mode");
  if (!csv && !options.force_null.empty()) Refuse("COPY force null available only in CSV mode");
  if (csv && options.delimiter == options.quote)
    Throw(sqlstate::kInvalidParameterValue, "COPY delimiter and quote must be different");
  if (options.format != CopyFormat::kBinary &&
      options.null_text.find(options.delimiter) != std::string::npos)
    Refuse("COPY delimiter must not appear in the NULL specification");
  if (csv && options.null_text.find(options.quote) != std::string::npos)
    Refuse("CSV quote character must not appear in the NULL specification");
}

}  // namespace

CopyOptions ReadCopyOptions(const PgQuery__CopyStmt& command, std::span<const std::string> columns,
                            std::string_view table) {
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
      std::string word = OptionText(option);
      if (command.is_from && strcasecmp(word.c_str(), "match") == 0) {
        options.header = options.header_match = true;
        continue;
      }
      auto header = ParseBoolean(word);
      if (!header)
        Throw(sqlstate::kInvalidParameterValue, "header requires a Boolean value or \"match\"");
      options.header = *header;
    } else if (name == "quote") {
      quote = OptionText(option);
    } else if (name == "escape") {
      escape = OptionText(option);
    } else if (name == "force_quote") {
      if (command.is_from) Refuse("COPY force quote only available using COPY TO");
      options.force_quote = NamedColumns(option, columns, table);
    } else if (name == "encoding") {
      if (!CheckSetting("client_encoding", OptionText(option)))
        Throw(sqlstate::kInvalidParameterValue,
              "argument to option \"encoding\" must be a valid encoding name");
    } else if (name == "force_not_null" && command.is_from) {
      options.force_not_null = NamedColumns(option, columns, table);
    } else if (name == "force_null" && command.is_from) {
      options.force_null = NamedColumns(option, columns, table);
    } else if (name == "freeze" && command.is_from) {
      // It only spares a later VACUUM: rows that are not frozen are as good.
      if (!ParseBoolean(OptionText(option)))
        Throw(sqlstate::kSyntaxError, "freeze requires a Boolean value");
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

}  // namespace sluice
