// FOR UPDATE and its kin: which tables' rows a SELECT locks, and where none can be.
#include "parser/analyzer.h"

namespace sluice {

const char* NameOf(LockStrength strength) {
  switch (strength) {
    case LockStrength::kForKeyShare:
      return "FOR KEY SHARE";
    case LockStrength::kForShare:
      return "FOR SHARE";
    case LockStrength::kForNoKeyUpdate:
      return "FOR NO KEY UPDATE";
    case LockStrength::kForUpdate:
      break;
  }
  return "FOR UPDATE";
}

namespace {

LockStrength StrengthOf(const PgQuery__LockingClause& clause) {
  switch (clause.strength) {
    case PG_QUERY__LOCK_CLAUSE_STRENGTH__LCS_FORKEYSHARE:
      return LockStrength::kForKeyShare;
    case PG_QUERY__LOCK_CLAUSE_STRENGTH__LCS_FORSHARE:
      return LockStrength::kForShare;
    case PG_QUERY__LOCK_CLAUSE_STRENGTH__LCS_FORNOKEYUPDATE:
      return LockStrength::kForNoKeyUpdate;
    default:
      return LockStrength::kForUpdate;
  }
}

LockWaitPolicy WaitPolicyOf(const PgQuery__LockingClause& clause) {
  switch (clause.wait_policy) {
    case PG_QUERY__LOCK_WAIT_POLICY__LockWaitSkip:
      return LockWaitPolicy::kSkipLocked;
    case PG_QUERY__LOCK_WAIT_POLICY__LockWaitError:
      return LockWaitPolicy::kNoWait;
    default:
      return LockWaitPolicy::kBlock;
  }
}

// A row of the result must be one row of each table.
// `aggregates`: the query has some, which it does not tell yet.
void CheckLockable(const ParseState& p, const Query& query, LockStrength strength,
                   bool aggregates = false) {
  auto forbid = [&](bool there, const char* what) {
    if (there)
      ThrowAt(p, -1, sqlstate::kFeatureNotSupported, "{} is not allowed with {}", NameOf(strength),
              what);
  };
  forbid(query.set_op != nullptr, "UNION/INTERSECT/EXCEPT");
  forbid(query.distinct || !query.distinct_on.empty(), "DISTINCT clause");
  forbid(!query.group_by.empty() || !query.grouping_sets.empty(), "GROUP BY clause");
  forbid(query.having != nullptr, "HAVING clause");
  forbid(query.has_aggregates || aggregates, "aggregate functions");
  forbid(!query.windows.empty(), "window functions");
}

class Locking {
 public:
  Locking(ParseState& p, LockStrength strength, LockWaitPolicy wait_policy)
      : p_(p), strength_(strength), wait_policy_(wait_policy) {}

  // Without a list of names: every table of FROM, also in its subqueries; what is no table is left
  // alone.
  void LockAll(Query* query, bool inherited) {
    CheckLockable(p_, *query, strength_);
    std::span<QueryRel> rels = p_.a.arena->CopyArray(query->rels);
    ForEachFromRel(query->from,
                   [&](int rel) { Lock(query, &rels[static_cast<size_t>(rel)], rel, inherited); });
    query->rels = rels;
  }

  void LockNamed(Query* query, const PgQuery__RangeVar& var) {
    int location = p_.Location(var.location);
    if ((var.schemaname != nullptr && *var.schemaname != 0) ||
        (var.catalogname != nullptr && *var.catalogname != 0))
      ThrowAt(p_, location, sqlstate::kSyntaxError, "{} must specify unqualified relation names",
              NameOf(strength_));
    std::string_view name = var.relname;
    for (const NsItem& item : p_.names)
      if (item.rel < 0 && item.has_alias && item.name == name) Forbid(location, "a join");
    std::span<QueryRel> rels = p_.a.arena->CopyArray(query->rels);
    bool found = false;
    ForEachFromRel(query->from, [&](int index) {
      QueryRel& rel = rels[static_cast<size_t>(index)];
      if (found || rel.alias != name) return;
      found = true;
      if (rel.kind == RelKind::kFunction) Forbid(location, "a function");
      if (rel.kind == RelKind::kValues) Forbid(location, "VALUES");
      if (rel.kind == RelKind::kCte) Forbid(location, "a WITH query");
      Lock(query, &rel, index, false);
    });
    if (!found)
      ThrowAt(p_, location, sqlstate::kUndefinedTable,
              "relation \"{}\" in {} clause not found in FROM clause", name, NameOf(strength_));
    query->rels = rels;
  }

 private:
  template <typename Fn>
  static void ForEachFromRel(const JoinTree* tree, const Fn& fn) {
    if (tree == nullptr) return;
    if (tree->is_leaf) return fn(tree->rel);
    ForEachFromRel(tree->left, fn);
    ForEachFromRel(tree->right, fn);
  }

  [[noreturn]] void Forbid(int location, const char* what) const {
    ThrowAt(p_, location, sqlstate::kFeatureNotSupported, "{} cannot be applied to {}",
            NameOf(strength_), what);
  }

  void Lock(Query* query, QueryRel* rel, int index, bool inherited) {
    if (rel->kind == RelKind::kSubquery && rel->subquery->command == QueryCommand::kSelect) {
      Query* copy = p_.a.arena->New<Query>(*rel->subquery);
      LockAll(copy, true);
      rel->subquery = copy;
    } else if (rel->kind == RelKind::kTable) {
      if (rel->table->kind == RelationKind::kMaterializedView)
        ThrowAt(p_, -1, sqlstate::kWrongObjectType, "cannot lock rows in materialized view \"{}\"",
                rel->table->name);
      AddMark(query, index, inherited);
    } else if (rel->kind == RelKind::kVirtual) {
      RefuseAt(p_, -1, "{} of the system view \"{}\"", NameOf(strength_), rel->virtual_name);
    }
  }

  // Of several clauses for one table the strongest counts, and the least patient.
  void AddMark(Query* query, int rel, bool inherited) {
    std::vector<RowMark> marks(query->row_marks.begin(), query->row_marks.end());
    auto found = std::ranges::find(marks, rel, &RowMark::rel);
    if (found == marks.end()) {
      marks.push_back({rel, strength_, wait_policy_, inherited});
    } else {
      found->strength = std::max(found->strength, strength_);
      found->wait_policy = std::max(found->wait_policy, wait_policy_);
      found->inherited = found->inherited && inherited;
    }
    query->row_marks = p_.a.arena->CopyArray(marks);
  }

  ParseState& p_;
  const LockStrength strength_;
  const LockWaitPolicy wait_policy_;
};

}  // namespace

void RefuseLocking(const ParseState& p, const PgQuery__SelectStmt& statement,
                   std::string_view problem) {
  if (statement.n_locking_clause > 0)
    ThrowAt(p, -1, sqlstate::kFeatureNotSupported, "{} {}",
            NameOf(StrengthOf(*statement.locking_clause[0]->locking_clause)), problem);
}

void TransformLocking(ParseState& p, const PgQuery__SelectStmt& statement, Query* query) {
  for (size_t i = 0; i < statement.n_locking_clause; i++) {
    const PgQuery__LockingClause& clause = *statement.locking_clause[i]->locking_clause;
    Locking locking(p, StrengthOf(clause), WaitPolicyOf(clause));
    CheckLockable(p, *query, StrengthOf(clause), p.has_aggregates);
    if (!p.select_functions.empty())
      ThrowAt(p, -1, sqlstate::kFeatureNotSupported,
              "{} is not allowed with set-returning functions in the target list",
              NameOf(StrengthOf(clause)));
    if (clause.n_locked_rels == 0) locking.LockAll(query, false);
    for (size_t j = 0; j < clause.n_locked_rels; j++)
      locking.LockNamed(query, *clause.locked_rels[j]->range_var);
  }
}

}  // namespace sluice
