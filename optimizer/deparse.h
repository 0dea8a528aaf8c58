// Analysed expressions and queries → SQL text that a shard understands as we do: remote names,
// every constant and parameter with its type, so that the shard resolves the same functions.
//
// Rels are called r1, r2, … (unique in a statement, so that correlated references need no thought);
// columns of what isn't a table c1, c2, ….
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parser/query.h"

namespace sluice {

class Catalog;

class Deparser {
 public:
  // The foreign tables, all on one server, that hold `rel`'s rows in this statement (never empty):
  // more than one are put together by UNION ALL.
  using FindLeaves = std::function<std::vector<const Relation*>(const QueryRel& rel)>;

  Deparser(const Catalog& catalog, FindLeaves find_leaves)
      : catalog_(catalog), find_leaves_(std::move(find_leaves)) {}

  // A whole statement, with its own rels, junk targets left out.
  std::string WholeQuery(const Query& query);

  // UPDATE or DELETE, one level: the parts of a statement whose rels are the open scope's.
  struct Change {
    QueryCommand command;
    int target;            // rel; on one table of the server
    const JoinTree* from;  // the target in it, under nothing but inner joins and left of semi joins
    std::vector<const Expr*> quals = {};
    std::span<const Assignment> assignments = {};
    std::span<const Target> returning = {};
  };
  std::string ChangeStatement(const Change& change);
  // Whether `target` stands in `tree` where ChangeStatement can take it out.
  static bool CanChange(const JoinTree& tree, int target);
  // INSERT INTO … (columns), the target being rel `target`; ON CONFLICT … RETURNING …
  std::string InsertHead(int target, std::span<const int> columns);
  std::string InsertTail(const Modification& modification, std::span<const Target> returning);

  // Piecewise: the scope that expressions of levels_up 0 are resolved in. `qualify` false: one
  // table, whose columns need no alias.
  void OpenScope(std::span<const QueryRel> rels, bool qualify, const Query* query = nullptr);
  void CloseScope();
  std::string Expression(const Expr& expr);
  std::string Alias(int rel) const { return scopes_.back().aliases[static_cast<size_t>(rel)]; }
  // FROM's text. Semi and anti joins come out as EXISTS conditions for WHERE.
  std::string From(const JoinTree& tree, std::vector<std::string>* conditions);
  // " FOR UPDATE OF alias NOWAIT"
  std::string RowLock(const RowMark& mark, bool of_alias) const;
  // "expression ASC NULLS LAST"
  std::string SortItem(const SortKey& key, const std::string& expression);
  // An expression where a bare number would be taken for a column position.
  std::string Unpositional(const Expr& expr);
  std::string TypeName(Oid type, int32_t typmod) const;

  // What $1, $2, … of the text are.
  const std::vector<const Expr*>& params() const { return params_; }

 private:
  struct Scope {
    std::span<const QueryRel> rels;
    std::vector<std::string> aliases;
    std::vector<std::vector<const Relation*>> leaves;  // kTable, on first use
    bool qualify;
    std::vector<std::string> cte_names;
    const Query* query = nullptr;  // whole queries: for window functions
  };

  std::string AnyQuery(const Query& query);
  std::string Select(const Query& query);
  std::string Modify(const Query& query);
  void TakeOutTarget(const JoinTree& tree, int target, std::vector<std::string>* items,
                     std::vector<std::string>* conditions);
  std::string SetList(const QueryRel& target, const Relation& leaf,
                      std::span<const Assignment> assignments);
  std::string Returning(std::span<const Target> returning);
  std::string SetOp(const SetOpTree& tree);
  std::string With(const Query& query);
  std::string Tail(const Query& query, const std::vector<int>& position);
  std::string Rel(int rel);
  std::string TableRel(Scope& scope, int rel);
  std::string ColumnAliases(const QueryRel& rel) const;
  const std::vector<const Relation*>& LeavesOf(Scope& scope, int rel);
  std::string RemoteColumn(const Relation& leaf, const QueryRel& rel, int column) const;

  std::string Column(const Expr& expr);
  std::string Constant(const Expr& expr);
  std::string Parameter(const Expr& expr);
  std::string Call(const Expr& expr);
  std::string Function(Oid function, const Expr& expr);
  std::string Aggregate(const Expr& expr);
  std::string Sublink(const Expr& expr);
  std::string Window(const Expr& expr);
  std::string Frame(const WindowClause& window);
  std::string Arguments(std::span<const Expr* const> args, bool variadic = false);
  std::string Operand(const Expr& expr) { return Expression(expr); }

  const Catalog& catalog_;
  FindLeaves find_leaves_;
  std::vector<Scope> scopes_;  // innermost last
  int rel_count_ = 0, cte_count_ = 0;
  std::vector<const Expr*> params_;
};

}  // namespace sluice
