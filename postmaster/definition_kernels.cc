// pg_get_…def, pg_get_expr, descriptions: how objects are written as SQL.
#include <charconv>
#include <unordered_map>

#include "catalog/quote.h"
#include "catalog/system_catalog.h"
#include "catalog/virtual_tables.h"
#include "postmaster/catalog_kernels.h"
#include "postmaster/object_names.h"
#include "postmaster/pg_catalog.h"
#include "postmaster/text_kernel.h"

namespace sluice {
namespace {

using View = std::string_view;
using Text = std::optional<std::string>;

const Relation* RelationArg(const KernelCall& call, size_t row) {
  return CurrentCatalogSession().catalog->FindRelation(OidArg(call, 0, row));
}

// The catalogs hold expressions as SQL text already.
// A default's sequence is named with its schema where the search path does not find it: with an
// empty path, as a dump has, the text stands for itself.
Text GetExpr(const KernelCall& call, size_t i) {
  constexpr View kNextval = "nextval('";
  std::string text(call.args[0]->At<View>(i));
  const Relation* table = CurrentCatalogSession().catalog->FindRelation(OidArg(call, 1, i));
  bool named =
      table != nullptr && text.starts_with(kNextval) &&
      text.substr(kNextval.size(), text.find("'::") - kNextval.size()).find('.') == text.npos;
  if (named && !IsSchemaInPath(CurrentCatalogSession(), table->schema))
    text.insert(kNextval.size(), QuoteIdentifier(table->schema) + ".");
  return text;
}

Text ViewDefinition(Oid oid) {
  if (const VirtualTable* table = FindVirtualTable(oid)) {
    if (table->kind != 'v' || table->sql.empty()) return std::nullopt;
    std::string text(table->sql);
    return text.substr(text.find_first_not_of('\n')) + ";";
  }
  const Relation* view = CurrentCatalogSession().catalog->FindRelation(oid);
  if (view == nullptr || view->view_sql.empty()) return std::nullopt;
  return " " + view->view_sql + ";";
}
Text ViewByOid(const KernelCall& call, size_t i) {
  return ViewDefinition(OidArg(call, 0, i));
}
Text ViewByName(const KernelCall& call, size_t i) {
  return ViewDefinition(object_names->Find(kRegclassOid, call.args[0]->At<View>(i)));
}

Text PartitionKeyDefinition(const KernelCall& call, size_t i) {
  const Relation* relation = RelationArg(call, i);
  if (relation == nullptr || relation->kind != RelationKind::kPartitioned) return std::nullopt;
  return PartitionKeyText(*relation);
}

// --- functions: all that pg_proc shows are Postgres's own

struct Signature {
  std::vector<std::string> names;
  std::vector<char> modes;  // as in proargmodes; i for all where that is NULL
  std::vector<Oid> types;
  size_t defaults = 0;
  std::vector<std::string> default_sql;  // of the last arguments
};

std::vector<std::string> ArrayElements(View text) {
  std::vector<std::string> elements;
  if (text.size() <= 2) return elements;
  std::string element;
  bool quoted = false;
  for (size_t i = 1; i < text.size(); i++) {
    char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '}')) {
      elements.push_back(std::move(element));
      element.clear();
    } else {
      element += c;
    }
  }
  return elements;
}

// "1, 'a, b'::text" at its top commas.
std::vector<std::string> SplitExpressions(View text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '\'') quoted = !quoted;
    if (!quoted) depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0 && !quoted) {
      parts.push_back(std::move(part));
      part.clear();
    } else if (!(c == ' ' && part.empty())) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

Oid Number(View text) {
  Oid value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Signature SignatureOf(const SystemRows& row) {
  constexpr size_t kDefaultCount = 17, kArgs = 19, kAllArgs = 20, kModes = 21, kNames = 22,
                   kDefaults = 23;  // pg_proc's columns
  Signature signature;
  if (auto all = row.Value(kAllArgs)) {
    for (const std::string& type : ArrayElements(*all)) signature.types.push_back(Number(type));
  } else {
    View list = row.Raw(kArgs);
    while (!list.empty()) {
      size_t space = std::min(list.find(' '), list.size());
      signature.types.push_back(Number(list.substr(0, space)));
      list.remove_prefix(std::min(space + 1, list.size()));
    }
  }
  signature.modes.resize(signature.types.size(), 'i');
  if (auto modes = row.Value(kModes)) {
    std::vector<std::string> letters = ArrayElements(*modes);
    for (size_t i = 0; i < std::min(letters.size(), signature.modes.size()); i++)
      signature.modes[i] = letters[i][0];
  }
  if (auto names = row.Value(kNames)) signature.names = ArrayElements(*names);
  signature.names.resize(signature.types.size());
  signature.defaults = Number(row.Raw(kDefaultCount));
  if (auto defaults = row.Value(kDefaults)) signature.default_sql = SplitExpressions(*defaults);
  return signature;
}

const Signature* FindSignature(Oid proc) {
  static const auto* signatures = [] {
    auto* map = new std::unordered_map<Oid, Signature>;
    for (SystemRows row = SystemRowsOf("pg_proc"); row.Next();)
      map->emplace(Number(row.Raw(0)), SignatureOf(row));
    return map;
  }();
  auto found = signatures->find(proc);
  return found == signatures->end() ? nullptr : &found->second;
}

bool IsInput(char mode) {
  return mode == 'i' || mode == 'b' || mode == 'v';
}

Text Arguments(Oid oid, bool with_defaults) {
  const Signature* signature = FindSignature(oid);
  const ProcInfo* proc = FindProc(oid);
  if (signature == nullptr || proc == nullptr) return std::nullopt;
  size_t inputs = 0, input = 0;
  for (char mode : signature->modes) inputs += IsInput(mode);
  std::string text;
  bool ordered_set = proc->aggregate_kind != '-' && proc->aggregate_kind != 'n';
  for (size_t i = 0; i < signature->types.size(); i++) {
    char mode = signature->modes[i];
    if (mode == 't') continue;
    // The direct arguments of an ordered-set aggregate come before ORDER BY.
    bool direct_end = ordered_set && input == proc->direct_arg_count && IsInput(mode);
    if (direct_end)
      text += text.empty() ? "ORDER BY " : " ORDER BY ";
    else if (!text.empty())
      text += ", ";
    if (mode == 'o') text += "OUT ";
    if (mode == 'b') text += "INOUT ";
    if (mode == 'v') text += "VARIADIC ";
    if (!signature->names[i].empty()) text += QuoteIdentifier(signature->names[i]) + " ";
    text += FormatTypeName(signature->types[i]);
    if (!IsInput(mode)) continue;
    size_t from_end = inputs - input++;
    if (with_defaults && !ordered_set && from_end <= signature->default_sql.size())
      text += " DEFAULT " + signature->default_sql[signature->default_sql.size() - from_end];
    // An ordered-set aggregate whose last direct argument is VARIADIC sorts by it too.
    bool last = i + 1 == signature->types.size();
    if (ordered_set && last && mode == 'v' && input == proc->direct_arg_count) i--;
  }
  return text;
}
Text FunctionArguments(const KernelCall& call, size_t i) {
  return Arguments(OidArg(call, 0, i), true);
}
Text IdentityArguments(const KernelCall& call, size_t i) {
  return Arguments(OidArg(call, 0, i), false);
}

Text FunctionResult(const KernelCall& call, size_t i) {
  Oid oid = OidArg(call, 0, i);
  const ProcInfo* proc = FindProc(oid);
  const Signature* signature = FindSignature(oid);
  if (proc == nullptr || signature == nullptr || proc->kind == 'p') return std::nullopt;
  std::string columns;
  for (size_t a = 0; a < signature->types.size(); a++) {
    if (signature->modes[a] != 't') continue;
    columns += (columns.empty() ? "" : ", ") + QuoteIdentifier(signature->names[a]) + " " +
               FormatTypeName(signature->types[a]);
  }
  if (!columns.empty()) return "TABLE(" + columns + ")";
  return (proc->returns_set ? "SETOF " : "") + FormatTypeName(proc->result);
}

// --- tables that Sluice made

Text IndexDefinition(const KernelCall& call, size_t i) {
  Catalog::IndexOfTable found =
      FindIndexByOid(*CurrentCatalogSession().catalog, OidArg(call, 0, i));
  if (!found) return std::nullopt;
  int32_t column = call.args.size() > 1 ? call.args[1]->At<int32_t>(i) : 0;
  if (column == 0) return found.index->definition;
  if (column < 1 || column > static_cast<int32_t>(found.index->columns.size())) return "";
  int number = found.index->columns[static_cast<size_t>(column) - 1];
  if (number < 0)
    Refuse("the expression of index \"{}\" alone is not supported", found.index->name);
  return QuoteIdentifier(found.table->columns[static_cast<size_t>(number)].name);
}

// Definitions name tables of public plainly (ddl_read_back.cc): right where public is searched.
Text DefinitionOf(const Constraint& constraint) {
  constexpr View kReferences = " REFERENCES ";
  std::string text = constraint.definition;
  const Relation* referenced =
      CurrentCatalogSession().catalog->FindRelation(constraint.referenced_table);
  size_t at = text.find(kReferences);
  bool plain = referenced != nullptr && referenced->schema == "public" && at != text.npos;
  if (plain && !IsSchemaInPath(CurrentCatalogSession(), "public"))
    text.insert(at + kReferences.size(), "public.");
  return text;
}
Text ConstraintDefinition(const KernelCall& call, size_t i) {
  Oid oid = OidArg(call, 0, i);
  for (const auto& [table_oid, table] : CurrentCatalogSession().catalog->relations)
    for (const Constraint& constraint : table.constraints)
      if (constraint.oid == oid) return DefinitionOf(constraint);
  return std::nullopt;
}

Text SerialSequence(const KernelCall& call, size_t i) {
  const Catalog& catalog = *CurrentCatalogSession().catalog;
  Oid oid = object_names->Find(kRegclassOid, call.args[0]->At<View>(i));
  std::string column(call.args[1]->At<View>(i));
  const Relation* table = catalog.FindRelation(oid);
  if (table == nullptr || table->FindColumn(column) < 0)
    Throw(sqlstate::kUndefinedColumn, "column \"{}\" of relation \"{}\" does not exist", column,
          FindClass(catalog, oid).name);
  for (const auto& [sequence_oid, sequence] : catalog.sequences)
    if (sequence.owned_by == oid && sequence.owned_column == column)
      return QuoteQualified(sequence.schema, sequence.name);
  return std::nullopt;
}

Text CommentOn(Oid object, View catalog_name) {
  const Catalog& catalog = *CurrentCatalogSession().catalog;
  auto found = catalog.comments.find(object);
  if (found == catalog.comments.end()) return std::nullopt;
  const VirtualTable* table = FindVirtualTable("pg_catalog", catalog_name);
  bool same =
      catalog_name.empty() || (table != nullptr && table->oid == CatalogOf(catalog, object));
  return same ? Text(found->second) : std::nullopt;
}
Text Comment(const KernelCall& call, size_t i) {
  return CommentOn(OidArg(call, 0, i), call.args.size() > 1 ? call.args[1]->At<View>(i) : View());
}
Text ColumnComment(const KernelCall& call, size_t i) {
  const Relation* relation = RelationArg(call, i);
  int32_t number = call.args[1]->At<int32_t>(i);
  if (relation == nullptr || number < 1 || number > static_cast<int32_t>(relation->columns.size()))
    return std::nullopt;
  const std::string& text = relation->columns[static_cast<size_t>(number) - 1].comment;
  return text.empty() ? std::nullopt : Text(text);
}

Text RuleDefinition(const KernelCall& call, size_t i) {
  for (const auto& [oid, view] : CurrentCatalogSession().catalog->relations)
    if (view.kind == RelationKind::kView &&
        DerivedOid("rule", std::to_string(oid)) == OidArg(call, 0, i))
      return "CREATE RULE \"_RETURN\" AS ON SELECT TO " + QuoteQualified(view.schema, view.name) +
             " DO INSTEAD " + view.view_sql + ";";
  return std::nullopt;
}

constexpr Kernel kKernels[] = {
    {1716, "pg_get_expr", true, TextOf<GetExpr>},
    {2509, "pg_get_expr", true, TextOf<GetExpr>},
    {1640, "pg_get_viewdef", true, TextOf<ViewByName>},
    {1641, "pg_get_viewdef", true, TextOf<ViewByOid>},
    {2505, "pg_get_viewdef", true, TextOf<ViewByName>},
    {2506, "pg_get_viewdef", true, TextOf<ViewByOid>},
    {3159, "pg_get_viewdef", true, TextOf<ViewByOid>},
    {3352, "pg_get_partkeydef", true, TextOf<PartitionKeyDefinition>},
    {2162, "pg_get_function_arguments", true, TextOf<FunctionArguments>},
    {2232, "pg_get_function_identity_arguments", true, TextOf<IdentityArguments>},
    {2165, "pg_get_function_result", true, TextOf<FunctionResult>},
    {6197, "pg_get_function_sqlbody", true, AlwaysNull},
    // Objects of these kinds are not there.
    {1662, "pg_get_triggerdef", true, AlwaysNull},
    {2730, "pg_get_triggerdef", true, AlwaysNull},
    {3415, "pg_get_statisticsobjdef", true, AlwaysNull},
    {6174, "pg_get_statisticsobjdef_columns", true, AlwaysNull},
    {1643, "pg_get_indexdef", true, TextOf<IndexDefinition>},
    {2507, "pg_get_indexdef", true, TextOf<IndexDefinition>},
    {1387, "pg_get_constraintdef", true, TextOf<ConstraintDefinition>},
    {2508, "pg_get_constraintdef", true, TextOf<ConstraintDefinition>},
    {1573, "pg_get_ruledef", true, TextOf<RuleDefinition>},
    {2504, "pg_get_ruledef", true, TextOf<RuleDefinition>},
    {1665, "pg_get_serial_sequence", true, TextOf<SerialSequence>},
    {1215, "obj_description", true, TextOf<Comment>},
    {1348, "obj_description", true, TextOf<Comment>},
    {1216, "col_description", true, TextOf<ColumnComment>},
    {1993, "shobj_description", true, TextOf<Comment>},
};

}  // namespace

std::span<const Kernel> DefinitionKernels() {
  return kKernels;
}

}  // namespace sluice
