// SET, RESET, SHOW.
#include <pg_query/pg_query.pb-c.h>

#include "catalog/virtual_tables.h"
#include "postmaster/running_query.h"
#include "postmaster/session.h"
#include "postmaster/setting_checks.h"
#include "postmaster/virtual_rows.h"
#include "types/datetime.h"

namespace sluice {
namespace {

std::string ConstantText(const PgQuery__Node& node);

bool IsInterval(const PgQuery__TypeName& type) {
  return type.n_names > 0 &&
         std::string_view(type.names[type.n_names - 1]->string->sval) == "interval";
}

// SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE: hours east of UTC, as SET TIME ZONE -8.
std::string HoursText(const PgQuery__TypeCast& cast) {
  constexpr int32_t kFullRange = 0x7fff, kFullPrecision = 0xffff;
  const PgQuery__TypeName& type = *cast.type_name;
  int32_t range = kFullRange;
  if (type.n_typmods > 0 && type.typmods[0]->node_case == PG_QUERY__NODE__NODE_A_CONST &&
      type.typmods[0]->a_const->val_case == PG_QUERY__A__CONST__VAL_IVAL)
    range = type.typmods[0]->a_const->ival->ival;
  Interval interval =
      ParseInterval(ConstantText(*cast.arg), (range << 16) | kFullPrecision, SessionSettings{});
  if (interval.months != 0)
    Throw(sqlstate::kInvalidParameterValue, "cannot specify months in time zone interval");
  if (interval.days != 0)
    Throw(sqlstate::kInvalidParameterValue, "cannot specify days in time zone interval");
  return fmt::format("{}", static_cast<double>(interval.microseconds) / 3.6e9);
}

// The text of a constant in SET's or an option's argument.
std::string ConstantText(const PgQuery__Node& node) {
  if (node.node_case == PG_QUERY__NODE__NODE_A_CONST) {
    const PgQuery__AConst& constant = *node.a_const;
    switch (constant.val_case) {
      case PG_QUERY__A__CONST__VAL_IVAL:
        return std::to_string(constant.ival->ival);
      case PG_QUERY__A__CONST__VAL_FVAL:
        return constant.fval->fval;
      case PG_QUERY__A__CONST__VAL_BOOLVAL:
        return constant.boolval->boolval ? "on" : "off";
      case PG_QUERY__A__CONST__VAL_SVAL:
        return constant.sval->sval;
      default:
        break;
    }
    // libpg_query leaves out a zero: an integer constant without a value.
    if (!constant.isnull) return "0";
  }
  if (node.node_case == PG_QUERY__NODE__NODE_TYPE_CAST)
    return IsInterval(*node.type_cast->type_name) ? HoursText(*node.type_cast)
                                                  : ConstantText(*node.type_cast->arg);
  Throw(sqlstate::kSyntaxError, "SET requires constant values");
}

bool IsList(std::string_view name) {
  return strcasecmp(std::string(name).c_str(), "search_path") == 0 ||
         strcasecmp(std::string(name).c_str(), "DateStyle") == 0;
}

// As Postgres's quote_identifier, for the elements of search_path.
std::string QuoteElement(const std::string& text) {
  bool plain = !text.empty() && !isdigit(static_cast<unsigned char>(text[0]));
  for (char c : text)
    plain &= islower(static_cast<unsigned char>(c)) || isdigit(static_cast<unsigned char>(c)) ||
             c == '_';
  if (plain) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string SetText(const std::string& name, std::span<PgQuery__Node* const> args) {
  if (args.size() > 1 && !IsList(name))
    Throw(sqlstate::kInvalidParameterValue, "SET {} takes only one argument", name);
  std::string text;
  for (const PgQuery__Node* arg : args) {
    std::string element = ConstantText(*arg);
    if (!text.empty()) text += ", ";
    text += strcasecmp(name.c_str(), "search_path") == 0 ? QuoteElement(element) : element;
  }
  return text;
}

}  // namespace

Session::CommandResult Session::RunSet(const RawStatement& raw) {
  const PgQuery__VariableSetStmt& command = *raw.node->variable_set_stmt;
  std::string name = command.name == nullptr ? "" : command.name;
  bool local = command.is_local;
  if (local && !transaction_.in_block())
    Warn(sqlstate::kNoActiveSqlTransaction, "SET LOCAL can only be used in transaction blocks");
  switch (command.kind) {
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_MULTI:
      if (name == "TRANSACTION") {
        if (!transaction_.in_block())
          Warn(sqlstate::kNoActiveSqlTransaction,
               "SET TRANSACTION can only be used in transaction blocks");
        SetTransactionModes("transaction_", {command.args, command.n_args});
      } else if (name == "SESSION CHARACTERISTICS") {
        SetTransactionModes("default_transaction_", {command.args, command.n_args});
      } else {
        Refuse("SET {} is not supported", name);
      }
      return {"SET", std::nullopt};
    case PG_QUERY__VARIABLE_SET_KIND__VAR_RESET_ALL:
      settings_.ResetAll();
      return {"RESET", std::nullopt};
    case PG_QUERY__VARIABLE_SET_KIND__VAR_RESET:
      settings_.Reset(name, local);
      return {"RESET", std::nullopt};
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_DEFAULT:
      settings_.Reset(name, local);
      return {"SET", std::nullopt};
    case PG_QUERY__VARIABLE_SET_KIND__VAR_SET_CURRENT:
      settings_.Set(name, settings_.Text(name), SettingSource::kSession, local);
      return {"SET", std::nullopt};
    default:
      break;
  }
  std::string text = SetText(name, {command.args, command.n_args});
  settings_.Set(name, text, SettingSource::kSession, local);
  if (strcasecmp(name.c_str(), "background_ddl") == 0) NoticeBackgroundDdl();
  return {"SET", std::nullopt};
}

// BEGIN's and SET TRANSACTION's list: isolation level, access mode, deferrable.
void Session::SetTransactionModes(std::string_view prefix,
                                  std::span<PgQuery__Node* const> options) {
  bool local = prefix == "transaction_";
  for (const PgQuery__Node* node : options) {
    if (node->node_case != PG_QUERY__NODE__NODE_DEF_ELEM) continue;
    const PgQuery__DefElem& option = *node->def_elem;
    std::string_view name = option.defname;
    name.remove_prefix(std::string_view("transaction_").size());
    std::string text = ConstantText(*option.arg);
    if (name != "isolation") text = text == "0" ? "off" : "on";
    // Servers have begun with the level that it had.
    if (local && name == "isolation" && distributed_.written() &&
        text != settings_.Text("transaction_isolation"))
      Throw(sqlstate::kActiveSqlTransaction,
            "SET TRANSACTION ISOLATION LEVEL must be called before any query");
    settings_.Set(fmt::format("{}{}", prefix, name), text, SettingSource::kSession, local);
  }
}

std::vector<ColumnDescription> Session::ShowColumns(const char* name) {
  if (strcasecmp(name, "all") == 0)
    return {{"name", kTextOid, -1}, {"setting", kTextOid, -1}, {"description", kTextOid, -1}};
  if (strcasecmp(name, "jobs") == 0) {
    std::vector<ColumnDescription> columns;
    for (const VirtualColumn& column : FindVirtualTable("sluice", "jobs")->columns)
      columns.push_back({std::string(column.name), kTextOid, -1});
    return columns;
  }
  const SettingInfo* info = FindSetting(name);
  return {{info != nullptr ? std::string(info->name) : std::string(name), kTextOid, -1}};
}

Session::CommandResult Session::RunShow(const RawStatement& raw) {
  const char* name = raw.node->variable_show_stmt->name;
  TextRows rows;
  rows.columns = ShowColumns(name);
  if (strcasecmp(name, "all") == 0) {
    std::map<std::string, const SettingInfo*> sorted;
    for (const SettingInfo& info : AllSettings()) sorted.emplace(info.name, &info);
    for (const auto& [key, info] : sorted)
      rows.rows.push_back({key, settings_.Show(key), std::string(info->description)});
  } else if (strcasecmp(name, "jobs") == 0) {
    ScanVirtualTable(MakeQuerySession(), "jobs", [&](VirtualRow row) {
      rows.rows.push_back({row.begin(), row.end()});
    });
  } else {
    rows.rows.push_back({settings_.Show(name)});
  }
  return {"SHOW", std::move(rows)};
}

}  // namespace sluice
