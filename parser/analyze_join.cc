// JOIN in FROM: ON, USING and NATURAL, the columns they merge, and what the alias of a join hides.
#include <unordered_set>

#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

JoinType TypeOf(ParseState& p, PgQuery__JoinType type) {
  switch (type) {
    case PG_QUERY__JOIN_TYPE__JOIN_INNER:
      return JoinType::kInner;
    case PG_QUERY__JOIN_TYPE__JOIN_LEFT:
      return JoinType::kLeft;
    case PG_QUERY__JOIN_TYPE__JOIN_RIGHT:
      return JoinType::kRight;
    case PG_QUERY__JOIN_TYPE__JOIN_FULL:
      return JoinType::kFull;
    default:
      RefuseAt(p, -1, "this kind of join");
  }
}

// The visible columns of one side, in order.
std::vector<NsColumn> VisibleColumns(const std::vector<NsItem>& names) {
  std::vector<NsColumn> columns;
  for (const NsItem& item : names)
    if (item.columns_visible)
      columns.insert(columns.end(), item.columns->begin(), item.columns->end());
  return columns;
}

std::vector<std::string_view> UsingColumns(ParseState& p, const PgQuery__JoinExpr& join,
                                           const std::vector<NsColumn>& left,
                                           const std::vector<NsColumn>& right) {
  std::vector<std::string_view> names;
  if (join.is_natural) {
    std::unordered_set<std::string_view> right_names;
    for (const NsColumn& column : right) right_names.insert(column.name);
    for (const NsColumn& column : left)
      if (right_names.contains(column.name)) names.push_back(column.name);
    return names;
  }
  for (size_t i = 0; i < join.n_using_clause; i++) {
    std::string_view name = RawString(join.using_clause[i]);
    for (std::string_view other : names)
      if (other == name)
        ThrowAt(p, -1, sqlstate::kDuplicateColumn,
                "column name \"{}\" appears more than once in USING clause", name);
    names.push_back(p.a.arena->CopyString(name));
  }
  return names;
}

size_t FindUsingColumn(ParseState& p, const std::vector<NsColumn>& columns, std::string_view name,
                       const char* side) {
  size_t found = columns.size();
  for (size_t i = 0; i < columns.size(); i++) {
    if (columns[i].name != name) continue;
    if (found != columns.size())
      ThrowAt(p, -1, sqlstate::kAmbiguousColumn,
              "common column name \"{}\" appears more than once in {} table", name, side);
    found = i;
  }
  if (found == columns.size())
    ThrowAt(p, -1, sqlstate::kUndefinedColumn,
            "column \"{}\" specified in USING clause does not exist in {} table", name, side);
  return found;
}

// The merged column's value: the side that the join keeps, or the first that is not NULL.
Expr* MergeColumns(ParseState& p, JoinType type, Expr* left, Expr* right) {
  Expr* both[] = {left, right};
  Oid common = left->type;
  int32_t typmod = left->typmod;
  if (left->type != right->type) {
    common = SelectCommonType(p, both, "JOIN/USING");
    typmod = -1;
  } else if (left->typmod != right->typmod) {
    typmod = -1;
  }
  auto coerce = [&](Expr* expr) {
    Expr* result = expr;
    if (expr->type != common)
      result = CoerceType(p, expr, common, typmod, CoercionContext::kImplicit, false, -1);
    else if (expr->typmod != typmod)
      result = CoerceTypmod(p, expr, common, typmod, CoercionContext::kImplicit, false, -1);
    return result;
  };
  Expr* coerced_left = coerce(left);
  Expr* coerced_right = coerce(right);
  switch (type) {
    case JoinType::kInner:
      return coerced_left == left ? left : coerced_right == right ? right : coerced_left;
    case JoinType::kLeft:
      return coerced_left;
    case JoinType::kRight:
      return coerced_right;
    default: {
      Expr* merged = p.New(ExprKind::kCoalesce, common, -1);
      merged->typmod = typmod;
      const Expr* args[] = {coerced_left, coerced_right};
      merged->args = p.a.arena->CopyArray(std::span<const Expr* const>(args));
      return merged;
    }
  }
}

NsColumn ColumnOf(std::string_view name, const Expr* expr) {
  NsColumn column;
  column.name = name;
  column.type = expr->type;
  column.typmod = expr->typmod;
  column.collation = expr->collation;
  if (expr->kind == ExprKind::kColumn) {
    column.rel = expr->rel;
    column.column = expr->column;
  } else {
    column.merged = expr;
  }
  return column;
}

struct Merged {
  std::vector<NsColumn> columns;
  const Expr* condition = nullptr;
};

// Takes the merged columns out of `left` and `right`.
Merged MergeUsing(ParseState& p, JoinType type, const std::vector<std::string_view>& names,
                  std::vector<NsColumn>* left, std::vector<NsColumn>* right) {
  Merged merged;
  std::vector<const Expr*> conditions;
  std::vector<size_t> left_used, right_used;
  for (std::string_view name : names) {
    size_t l = FindUsingColumn(p, *left, name, "left");
    size_t r = FindUsingColumn(p, *right, name, "right");
    left_used.push_back(l);
    right_used.push_back(r);
    Expr* equal = MakeOperator(p, "=", MakeColumnExpr(p, (*left)[l], 0, -1),
                               MakeColumnExpr(p, (*right)[r], 0, -1), -1);
    conditions.push_back(CoerceToBoolean(p, equal, "JOIN/USING"));
    Expr* value = MergeColumns(p, type, MakeColumnExpr(p, (*left)[l], 0, -1),
                               MakeColumnExpr(p, (*right)[r], 0, -1));
    AssignExprCollations(p, value);
    merged.columns.push_back(ColumnOf(name, value));
  }
  auto remove = [](std::vector<NsColumn>* columns, std::vector<size_t> used) {
    std::sort(used.begin(), used.end(), std::greater<>());
    for (size_t i : used) columns->erase(columns->begin() + static_cast<std::ptrdiff_t>(i));
  };
  remove(left, std::move(left_used));
  remove(right, std::move(right_used));
  if (conditions.size() == 1)
    merged.condition = conditions[0];
  else if (conditions.size() > 1)
    merged.condition = MakeBool(p, ExprKind::kAnd, std::move(conditions), -1);
  return merged;
}

void ApplyJoinAlias(ParseState& p, const PgQuery__Alias& alias, std::vector<NsColumn>* columns) {
  if (alias.n_colnames > columns->size())
    ThrowAt(p, -1, sqlstate::kSyntaxError, "column alias list for \"{}\" has too many entries",
            alias.aliasname);
  for (size_t i = 0; i < alias.n_colnames; i++)
    (*columns)[i].name = p.a.arena->CopyString(RawString(alias.colnames[i]));
}

const Expr* TransformOn(ParseState& p, const RawNode* quals, const std::vector<NsItem>& left,
                        const std::vector<NsItem>& right) {
  // ON sees the two sides of its join and nothing else of this level.
  std::vector<NsItem> saved = std::exchange(p.names, {});
  p.names.insert(p.names.end(), left.begin(), left.end());
  p.names.insert(p.names.end(), right.begin(), right.end());
  for (NsItem& item : p.names) {
    item.lateral_only = false;
    item.lateral_ok = true;
  }
  Expr* on = TransformWhere(p, quals, Clause::kJoinOn, "JOIN/ON");
  p.names = std::move(saved);
  return on;
}

}  // namespace

const JoinTree* TransformJoin(ParseState& p, const PgQuery__JoinExpr& raw,
                              std::vector<NsItem>* names) {
  JoinTree* join = p.a.arena->New<JoinTree>();
  join->is_leaf = false;
  join->rel = -1;
  join->type = TypeOf(p, raw.jointype);

  std::vector<NsItem> left_names, right_names;
  auto forbidden = [&](JoinType nullable) {
    return join->type == nullable || join->type == JoinType::kFull ? "an outer join" : nullptr;
  };
  {
    ForbidRecursion forbid(p.a, forbidden(JoinType::kRight));
    join->left = TransformFromItem(p, raw.larg, &left_names);
  }
  // LATERAL items on the right may refer to the left, unless the join would then depend on itself.
  bool lateral_ok = join->type == JoinType::kInner || join->type == JoinType::kLeft;
  size_t outer_names = p.names.size();
  for (NsItem item : left_names) {
    item.lateral_only = true;
    item.lateral_ok = lateral_ok;
    p.names.push_back(item);
  }
  size_t first_right = p.rels.size();
  {
    ForbidRecursion forbid(p.a, forbidden(JoinType::kLeft));
    join->right = TransformFromItem(p, raw.rarg, &right_names);
  }
  p.names.resize(outer_names);
  CheckNameConflicts(p, left_names, right_names);
  for (size_t r = first_right; r < p.rels.size(); r++) join->lateral |= p.rels[r].lateral;

  std::vector<NsColumn> left_columns = VisibleColumns(left_names);
  std::vector<NsColumn> right_columns = VisibleColumns(right_names);
  Merged merged = MergeUsing(p, join->type, UsingColumns(p, raw, left_columns, right_columns),
                             &left_columns, &right_columns);
  join->on = merged.condition;
  if (raw.quals != nullptr) join->on = TransformOn(p, raw.quals, left_names, right_names);

  NsItem item;
  item.columns = p.a.NewColumnList();
  *item.columns = merged.columns;
  item.columns->insert(item.columns->end(), left_columns.begin(), left_columns.end());
  item.columns->insert(item.columns->end(), right_columns.begin(), right_columns.end());
  if (raw.alias != nullptr) {
    // Names behind an aliased join cannot be used any more.
    item.name = p.a.arena->CopyString(raw.alias->aliasname);
    item.has_alias = true;
    ApplyJoinAlias(p, *raw.alias, item.columns);
    names->push_back(item);
    return join;
  }
  item.rel_visible = false;
  std::vector<NsItem> all = std::move(left_names);
  all.insert(all.end(), right_names.begin(), right_names.end());
  for (NsItem& hidden : all) hidden.columns_visible = false;
  if (raw.join_using_alias != nullptr) {
    NsItem using_item;
    using_item.name = p.a.arena->CopyString(raw.join_using_alias->aliasname);
    using_item.has_alias = true;
    using_item.columns_visible = false;
    using_item.columns = p.a.NewColumnList();
    *using_item.columns = merged.columns;
    CheckNameConflicts(p, all, {using_item});
    all.push_back(using_item);
  }
  all.push_back(item);
  names->insert(names->end(), all.begin(), all.end());
  return join;
}

}  // namespace sluice
