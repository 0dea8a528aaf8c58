// Columns by name: which relation of which query level a name means.
#include "catalog/virtual_tables.h"
#include "common/bytes.h"
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

// A merged column is an expression over columns: all of them move as many levels up.
const Expr* RaiseLevels(ParseState& p, const Expr* expr, int levels_up, int location) {
  Expr* copy = p.a.arena->New<Expr>(*expr);
  if (expr->kind == ExprKind::kColumn) {
    copy->levels_up += levels_up;
    copy->location = location;
  }
  std::span<const Expr*> args = p.a.arena->NewArray<const Expr*>(expr->args.size());
  for (size_t i = 0; i < args.size(); i++)
    args[i] = RaiseLevels(p, expr->args[i], levels_up, location);
  copy->args = args;
  return copy;
}

const NsColumn* FindInItem(const ParseState& p, const NsItem& item, std::string_view name,
                           int location) {
  const NsColumn* found = nullptr;
  for (const NsColumn& column : *item.columns) {
    if (column.name != name) continue;
    if (found != nullptr)
      ThrowAt(p, location, sqlstate::kAmbiguousColumn, "column reference \"{}\" is ambiguous",
              name);
    found = &column;
  }
  return found;
}

void CheckLateral(ParseState& p, const NsItem& item, int location) {
  if (!item.lateral_only || item.lateral_ok) return;
  QueryError e(MakeError(sqlstate::kInvalidColumnReference,
                         "invalid reference to FROM-clause entry for table \"{}\"", item.name)
                   .Detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
                   .At(ErrorPosition(p, location)));
  throw e;
}

bool Matches(const NsItem& item, std::string_view schema, std::string_view name) {
  if (item.name != name || !item.rel_visible) return false;
  if (schema.empty()) return true;
  if (item.has_alias) return false;
  return item.table != nullptr ? item.table->schema == schema : item.system_schema == schema;
}

// The relation `schema`.`name` of this level or an outer one.
const NsItem* FindItem(ParseState& p, std::string_view schema, std::string_view name, int location,
                       int* levels_up) {
  int level = 0;
  for (ParseState* state = &p; state != nullptr; state = state->parent, level++) {
    const NsItem* found = nullptr;
    for (const NsItem& item : state->names) {
      if (!Matches(item, schema, name)) continue;
      if (item.lateral_only && !state->lateral_active) continue;
      if (found != nullptr)
        ThrowAt(p, location, MakeSqlState("42P09"), "table reference \"{}\" is ambiguous", name);
      CheckLateral(p, item, location);
      found = &item;
    }
    if (found != nullptr) {
      *levels_up = level;
      return found;
    }
  }
  return nullptr;
}

// Whether a relation of that name is in FROM somewhere, only not visible here.
bool IsHidden(ParseState& p, std::string_view name) {
  for (ParseState* state = &p; state != nullptr; state = state->parent) {
    for (const QueryRel& rel : state->rels)
      if (rel.alias == name) return true;
    for (const NsItem& item : state->names)
      if (item.name == name) return true;
  }
  return false;
}

[[noreturn]] void ThrowMissingItem(ParseState& p, std::string_view schema, std::string_view name,
                                   int location) {
  Error e;
  if (schema.empty() && IsHidden(p, name)) {
    e = MakeError(sqlstate::kUndefinedTable,
                  "invalid reference to FROM-clause entry for table \"{}\"", name);
    e.Hint(
        fmt::format("There is an entry for table \"{}\", but it cannot be referenced from this "
                    "part of the query.",
                    name));
  } else {
    e = MakeError(sqlstate::kUndefinedTable, "missing FROM-clause entry for table \"{}\"", name);
    for (ParseState* state = &p; state != nullptr && e.hint.empty(); state = state->parent)
      for (const QueryRel& rel : state->rels)
        if (rel.table != nullptr && rel.table->name == name && rel.alias != name) {
          e.message = fmt::format("invalid reference to FROM-clause entry for table \"{}\"", name);
          e.Hint(fmt::format("Perhaps you meant to reference the table alias \"{}\".", rel.alias));
          break;
        }
  }
  throw QueryError(e.At(ErrorPosition(p, location)));
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

struct NearestColumns {
  std::string first, second;  // second: one as near as the first; three or more are none
  size_t distance = 4;
};

// Names that may have been meant: at most three letters off, and no more than half of them. A wrong
// qualifier counts like wrong letters.
NearestColumns FindNearest(ParseState& p, std::string_view qualifier, std::string_view name) {
  NearestColumns nearest;
  for (ParseState* state = &p; state != nullptr; state = state->parent) {
    for (const QueryRel& rel : state->rels) {
      size_t penalty = qualifier.empty() ? 0 : EditDistance(qualifier, rel.alias);
      if (penalty >= 4) continue;
      for (const QueryColumn& column : rel.columns) {
        size_t distance = EditDistance(name, column.name);
        if (column.name.empty() || distance > name.size() / 2) continue;
        distance += penalty;
        if (distance > nearest.distance || distance > 3) continue;
        std::string found = fmt::format("{}.{}", rel.alias, column.name);
        if (distance < nearest.distance)
          nearest = {found, {}, distance};
        else if (!nearest.second.empty())
          nearest.first.clear(), nearest.second.clear();
        else if (!nearest.first.empty())
          nearest.second = found;
      }
    }
  }
  return nearest;
}

[[noreturn]] void ThrowMissingColumn(ParseState& p, std::string_view qualifier,
                                     std::string_view name, int location) {
  Error e =
      qualifier.empty()
          ? MakeError(sqlstate::kUndefinedColumn, "column \"{}\" does not exist", name)
          : MakeError(sqlstate::kUndefinedColumn, "column {}.{} does not exist", qualifier, name);
  NearestColumns nearest = FindNearest(p, qualifier, name);
  if (!nearest.second.empty())
    e.Hint(fmt::format("Perhaps you meant to reference the column \"{}\" or the column \"{}\".",
                       nearest.first, nearest.second));
  else if (!nearest.first.empty())
    e.Hint(fmt::format("Perhaps you meant to reference the column \"{}\".", nearest.first));
  throw QueryError(e.At(ErrorPosition(p, location)));
}

bool IsStar(const RawNode* node) {
  return node->node_case == PG_QUERY__NODE__NODE_A_STAR;
}

std::string SpelledName(const PgQuery__ColumnRef& ref) {
  std::string spelled;
  for (size_t i = 0; i < ref.n_fields; i++) {
    if (i > 0) spelled += '.';
    spelled += IsStar(ref.fields[i]) ? "*" : std::string(RawString(ref.fields[i]));
  }
  return spelled;
}

struct Qualifier {
  std::string_view schema, relation;
};

// All but the last field: relation, schema.relation or database.schema.relation.
Qualifier SplitQualifier(ParseState& p, const PgQuery__ColumnRef& ref, int location) {
  size_t count = ref.n_fields - 1;
  if (count == 1) return {{}, RawString(ref.fields[0])};
  if (count == 2) return {RawString(ref.fields[0]), RawString(ref.fields[1])};
  if (count == 3) {
    if (RawString(ref.fields[0]) != p.a.context.database)
      ThrowAt(p, location, sqlstate::kFeatureNotSupported,
              "cross-database references are not implemented: {}", SpelledName(ref));
    return {RawString(ref.fields[1]), RawString(ref.fields[2])};
  }
  ThrowAt(p, location, sqlstate::kSyntaxError,
          "improper qualified name (too many dotted names): {}", SpelledName(ref));
}

}  // namespace

const char* SystemColumn(std::string_view name) {
  for (const char* system : {"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"})
    if (name == system) return system;
  return nullptr;
}

Expr* MakeColumnExpr(ParseState& p, const NsColumn& column, int levels_up, int location) {
  if (column.merged != nullptr)
    return const_cast<Expr*>(RaiseLevels(p, column.merged, levels_up, location));
  Expr* expr = p.New(ExprKind::kColumn, column.type, location);
  expr->typmod = column.typmod;
  expr->collation = column.collation;
  expr->rel = column.rel;
  expr->column = column.column;
  expr->levels_up = levels_up;
  return expr;
}

// The system column of a system catalog: its own oid, wherever the row is there (its first column
// is never NULL).
Expr* MakeTableOid(ParseState& p, const NsItem& item, int levels_up, int location) {
  const ParseState* state = &p;
  for (int level = 0; level < levels_up; level++) state = state->parent;
  if (item.rel < 0) return nullptr;
  const QueryRel& rel = state->rels[static_cast<size_t>(item.rel)];
  const VirtualTable* table =
      rel.kind == RelKind::kVirtual ? FindVirtualTable("", rel.virtual_name) : nullptr;
  if (table == nullptr) return nullptr;
  auto constant = [&](Oid oid) {
    Expr* expr = p.New(ExprKind::kConst, kOidOid, location);
    char bytes[4];
    StoreBig(bytes, oid);
    expr->value = p.a.arena->CopyString({bytes, 4});
    return expr;
  };
  Expr* none = constant(kInvalidOid);
  none->is_null = true;
  Expr* there = p.New(ExprKind::kIsNotNull, kBoolOid, location);
  std::span<const Expr*> tested = p.a.arena->NewArray<const Expr*>(1);
  tested[0] = MakeColumnExpr(p, item.columns->front(), levels_up, location);
  there->args = tested;
  Expr* result = p.New(ExprKind::kCase, kOidOid, location);
  std::span<const Expr*> args = p.a.arena->NewArray<const Expr*>(3);
  args[0] = there;
  args[1] = constant(table->oid);
  args[2] = none;
  result->args = args;
  return result;
}

Expr* FindColumnByName(ParseState& p, std::string_view name, bool local_only, int location) {
  int level = 0;
  for (ParseState* state = &p; state != nullptr; state = state->parent, level++) {
    const NsColumn* found = nullptr;
    for (const NsItem& item : state->names) {
      if (!item.columns_visible) continue;
      if (item.lateral_only && !state->lateral_active) continue;
      const NsColumn* column = FindInItem(p, item, name, location);
      if (column == nullptr) {
        if (item.table != nullptr && SystemColumn(name) != nullptr && item.rel >= 0)
          RefuseAt(p, location, "system column \"{}\"", name);
        continue;
      }
      if (found != nullptr)
        ThrowAt(p, location, sqlstate::kAmbiguousColumn, "column reference \"{}\" is ambiguous",
                name);
      CheckLateral(p, item, location);
      found = column;
    }
    if (found != nullptr) return MakeColumnExpr(p, *found, level, location);
    if (name == "tableoid" && state->names.size() == 1)
      if (Expr* expr = MakeTableOid(p, state->names.front(), level, location)) return expr;
    if (local_only) break;
  }
  return nullptr;
}

Expr* TransformColumnRef(ParseState& p, const PgQuery__ColumnRef& ref) {
  int location = p.Location(ref.location);
  const RawNode* last = ref.fields[ref.n_fields - 1];
  if (IsStar(last)) {
    if (ref.n_fields == 1) ThrowAt(p, location, sqlstate::kSyntaxError, "invalid use of \"*\"");
    RefuseAt(p, location, "a whole row as a value");
  }
  std::string_view name = RawString(last);
  if (ref.n_fields == 1) {
    if (Expr* expr = FindColumnByName(p, name, false, location)) return expr;
    int levels_up;
    if (FindItem(p, {}, name, location, &levels_up) != nullptr)
      RefuseAt(p, location, "a whole row as a value (\"{}\")", name);
    ThrowMissingColumn(p, {}, name, location);
  }
  Qualifier qualifier = SplitQualifier(p, ref, location);
  int levels_up = 0;
  const NsItem* item = FindItem(p, qualifier.schema, qualifier.relation, location, &levels_up);
  if (item == nullptr) {
    // a.b may be column b of composite column a: no such types here, but say so.
    if (ref.n_fields == 2) {
      Expr* composite = nullptr;
      try {
        composite = FindColumnByName(p, qualifier.relation, false, location);
      } catch (const QueryError&) {
      }
      if (composite != nullptr && TypeCategory(composite->type) == 'C')
        RefuseAt(p, location, "fields of composite values");
    }
    ThrowMissingItem(p, qualifier.schema, qualifier.relation, location);
  }
  const NsColumn* column = FindInItem(p, *item, name, location);
  if (column == nullptr) {
    if (name == "tableoid")
      if (Expr* expr = MakeTableOid(p, *item, levels_up, location)) return expr;
    if (item->table != nullptr && SystemColumn(name) != nullptr)
      RefuseAt(p, location, "system column \"{}\"", name);
    ThrowMissingColumn(p, qualifier.relation, name, location);
  }
  return MakeColumnExpr(p, *column, levels_up, location);
}

Expr* FindRowField(ParseState& p, const PgQuery__ColumnRef& ref, std::string_view field) {
  std::string name = RowFieldName(RawString(ref.fields[ref.n_fields - 1]), field);
  int location = p.Location(ref.location), levels_up = 0;
  if (ref.n_fields == 1) return FindColumnByName(p, name, false, location);
  if (ref.n_fields != 2) return nullptr;
  const NsItem* item = FindItem(p, {}, RawString(ref.fields[0]), location, &levels_up);
  const NsColumn* column = item == nullptr ? nullptr : FindInItem(p, *item, name, location);
  return column == nullptr ? nullptr : MakeColumnExpr(p, *column, levels_up, location);
}

void ExpandStar(ParseState& p, const PgQuery__ColumnRef& ref) {
  int location = p.Location(ref.location);
  auto add_all = [&](const NsItem& item, int levels_up) {
    for (const NsColumn& column : *item.columns) {
      if (column.name.find(kRowFieldMark) != column.name.npos)
        RefuseAt(p, location, "a row as a value");
      p.targets.push_back({MakeColumnExpr(p, column, levels_up, location), column.name, false});
    }
  };
  if (ref.n_fields == 1) {
    bool any = false;
    for (const NsItem& item : p.names) {
      if (!item.columns_visible || item.lateral_only) continue;
      any = true;
      add_all(item, 0);
    }
    if (!any)
      ThrowAt(p, location, sqlstate::kSyntaxError,
              "SELECT * with no tables specified is not valid");
    return;
  }
  Qualifier qualifier = SplitQualifier(p, ref, location);
  int levels_up = 0;
  const NsItem* item = FindItem(p, qualifier.schema, qualifier.relation, location, &levels_up);
  if (item == nullptr) ThrowMissingItem(p, qualifier.schema, qualifier.relation, location);
  add_all(*item, levels_up);
}

}  // namespace sluice
