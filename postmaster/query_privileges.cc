#include "postmaster/query_privileges.h"

#include "catalog/privilege.h"
#include "parser/walk.h"

namespace sluice {
namespace {

class Checker {
 public:
  Checker(const Catalog& catalog, const Role& role, bool named)
      : catalog_(catalog), role_(role), named_(named) {}

  void Check(const Query& query) {
    for (const QueryRel& rel : query.rels) {
      if (rel.kind == RelKind::kTable) Require(*rel.table, kSelect);
      if (rel.view != nullptr) {
        CheckView(rel);
        if (!rel.subquery->row_marks.empty()) Require(*rel.view, kUpdate);
      } else if (rel.subquery != nullptr) {
        Check(*rel.subquery);
      }
    }
    for (const RowMark& mark : query.row_marks)
      Require(*query.rels[static_cast<size_t>(mark.rel)].table, kUpdate);
    for (const Cte& cte : query.ctes) Check(*cte.query);
    ForEachSetOpLeaf(query.set_op, [&](const Query& leaf) { Check(leaf); });
    ForEachQueryExpr(query, [&](const Expr& expr) { Check(expr); });
  }

  void Require(const Relation& relation, char privilege) {
    auto schema = catalog_.schemas.find(relation.schema);
    if (named_ && schema != catalog_.schemas.end() &&
        !HasPrivilege(catalog_, role_, AclOf(schema->second, schema->first), kUsage))
      Throw(sqlstate::kInsufficientPrivilege, "permission denied for schema {}", relation.schema);
    RequirePrivilege(catalog_, role_, relation, privilege);
  }

 private:
  void CheckView(const QueryRel& rel) {
    Require(*rel.view, kSelect);
    const Role* owner = catalog_.FindRole(rel.view->owner);
    Checker(catalog_, owner != nullptr ? *owner : role_, false).Check(*rel.subquery);
  }

  void Check(const Expr& expr) {
    if (expr.subquery != nullptr) Check(*expr.subquery);
    ForEachChild(expr, [&](const Expr& child) { Check(child); });
  }

  const Catalog& catalog_;
  const Role& role_;
  const bool named_;  // the relations were named by the user, who needs their schemas too
};

}  // namespace

void RequireMayRun(const Catalog& catalog, const Role& role, const Query& query) {
  if (!role.superuser) Checker(catalog, role, true).Check(query);
}

void RequireMayRun(const Catalog& catalog, const Role& role, const CompletionRequest& completion) {
  if (role.superuser) return;
  Checker checker(catalog, role, false);
  for (const CompletionTable& table : completion.tables)
    if (table.relation != nullptr) checker.Require(*table.relation, kSelect);
}

}  // namespace sluice
