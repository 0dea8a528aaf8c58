// The planner's own types: one PlanQuery call's state. Internal to optimizer/.
//
// Expressions stay in the query's form (rel, column) until a node is built; a Relation in
// construction says which query expressions its output columns are (`provides`), and Lower() finds
// them there.
#pragma once

#include <set>
#include <vector>

#include "catalog/catalog.h"
#include "optimizer/evaluate.h"
#include "optimizer/expr_util.h"
#include "optimizer/plan.h"
#include "optimizer/planner.h"

namespace sluice {

class Deparser;
struct CompletionRequest;
struct CompletionTable;
struct CopyFromPlan;
struct CopyFromRequest;

// FROM in work. Leaf: rel ≥ 0. right == nullptr: `left` filtered by `on`. Right joins have become
// left ones.
struct JoinNode {
  int rel = -1;
  JoinType type = JoinType::kInner;
  JoinNode* left = nullptr;
  JoinNode* right = nullptr;
  std::vector<const Expr*> on = {};  // conjuncts
  bool null_aware = false;           // NOT IN
  bool apply = false;                // planned as LATERAL whatever it refers to
};

// A SELECT without set operations: subqueries pulled up, sublinks turned into joins and init plans.
struct Select {
  std::vector<QueryRel> rels;
  JoinNode* from = nullptr;
  std::vector<const Expr*> where;
  std::vector<Target> targets;
  bool has_aggregates = false;
  std::vector<int> group_by;
  std::span<const std::span<const int>> grouping_sets;
  std::vector<WindowClause> windows;
  std::vector<const Expr*> having;
  bool distinct = false;
  std::vector<int> distinct_on;
  std::vector<SortKey> order_by;
  const Expr* limit = nullptr;
  const Expr* offset = nullptr;
  bool with_ties = false;
  std::vector<RowMark> row_marks;
};

// A plan with what its columns are.
struct Local {
  Plan* plan = nullptr;
  std::vector<const Expr*> provides = {};
};

// One server's part of a remote piece: the foreign tables that stand for each rel.
struct Shard {
  Oid server;
  std::vector<std::pair<int, std::vector<const Relation*>>> leaves;  // by rel
  const std::vector<const Relation*>* LeavesOf(int rel) const;
};

// Some joined rels: either still remote (SQL for every shard, whose results put together are the
// piece), or a plan.
struct Piece {
  uint64_t rels = 0;
  bool remote = false;
  double rows = 1;
  // remote
  std::vector<Shard> shards;
  std::vector<Shard> unpruned;  // a base table's, before pruning
  // Where all its rels are replicated: the shards that can give the piece, each alone; `shards` is
  // one of them.
  std::vector<Shard> replicas;
  const JoinTree* tree = nullptr;
  std::vector<const Expr*> quals;        // for the shards' WHERE
  std::vector<const Expr*> local_quals;  // still to be applied here
  std::vector<int> key_rels;             // whose partition key says on which shard a row lies
  bool pushable = true;                  // false: only columns can be asked for (the lines wrapper)
  // local
  Local local;
};

// What each shard is asked for.
struct RemoteSelect {
  const Piece* piece = nullptr;
  std::vector<const Expr*> targets;
  bool grouped = false;
  std::vector<const Expr*> group_by;
  std::vector<const Expr*> having;
  bool distinct = false;
  std::vector<SortKey> order_by;  // target: index into targets
  std::optional<int64_t> limit;
  std::optional<double> rows_each;  // estimate, where it isn't the piece's rows
  const Query* windows = nullptr;   // targets may hold its window functions
  bool divisible = false;           // rows of one shard may come as several streams
};

// A WITH query that is in scope.
struct InlinedCte {
  const Query* query;   // null while it is a recursive one's own turn
  int work_table = -1;  // then
};

// Expressions of an outer row and the per-row parameters that stand for them below.
struct BoundParams {
  std::vector<int> params;
  std::vector<const Expr*> arguments;
};

class Planner {
 public:
  explicit Planner(const PlanRequest& request);

  struct Route;
  const PlannedStatement* Plan(const Query& query);
  // completion.cc
  const PlannedStatement* PlanCompleted(const CompletionRequest& completion);
  // copy_from.cc
  const CopyFromPlan* PlanCopy(const CopyFromRequest& copy);

 private:
  friend class RouteFinder;
  Local PlanTableCopy(const CompletionTable& table, const std::vector<Oid>& param_types);

  // planner.cc
  bool FindRoute(const Query& query, Route* route);
  bool CollectUses(const Query& query, Route* route);
  bool PruneUses(Route* route);
  bool TryRouter(const Query& query);
  void Finish(Local root, const Query& query);
  void CopyOut(std::span<const sluice::Plan* const> scans);
  void NoteWrites(const Query& query);
  void Number(sluice::Plan* plan);
  void Estimate(sluice::Plan* plan);
  bool TypesPassThrough(std::span<const OutputColumn> output) const;
  int16_t ClientFormat(size_t column) const;
  Local PlanAny(const Query& query, bool top);

  // modify.cc, modify_insert.cc, modify_by_id.cc
  Local PlanModify(const Query& query);
  Local PlanInsert(const Query& query);
  static void RequireInsertable(const Relation& table);
  Local PlanChange(const Query& query);
  bool TryWholeChange(const Query& query, const Select& select, const Piece& piece, Local* out);
  Local PlanChangeById(const Query& query, Select& select);
  ModifyPlan* NewModify(const Query& query, ModifyMethod method);
  bool ChangesKey(const Relation& table, std::span<const Assignment> assignments);
  std::vector<const Expr*> RoutingKeys(const Relation& table, int rel);
  bool CanShipChange(const Expr* expr) const;
  bool CanShipChange(const Query& query) const;
  void SetShardOutput(ModifyPlan* plan, const std::vector<const Expr*>& exprs);
  std::string_view TypeNameOf(const Expr& expr);

  Local PlanCteScan(const QueryRel& rel, const std::vector<const Expr*>& provides);
  void CheckWritesApart(const Query& query) const;

  // prepare.cc: Query → Select
  const Query* InlineCtes(const Query& query, std::vector<std::vector<InlinedCte>>& stack);
  const Query* InlineCte(const Cte& cte, std::vector<std::vector<InlinedCte>>& stack);
  const Query* Deeper(const Query& query, int levels);
  Select Prepare(const Query& query);
  JoinNode* CopyTree(const JoinTree* tree);
  JoinNode* NewJoinNode();
  void PullUpSubqueries(Select& select);
  bool PullUp(Select& select, int rel, JoinNode* leaf, bool nullable);
  // Takes a prepared subquery's rels in. Its tree and expressions are rewritten to `into`'s
  // numbering, references to the enclosing query becoming references to `into`'s own rels.
  void Graft(Select& into, Select& from);

  // sublink.cc
  void ConvertSublinks(Select& select);
  bool ConvertConjunct(Select& select, const Expr* conjunct);
  void ConvertExists(Select& select, const Query& subquery, bool negated);
  bool ConvertAny(Select& select, const Expr& sublink, bool negated);
  const Expr* DecorrelateScalar(Select& select, const Expr& sublink);
  const Expr* ReplaceSublinks(Select& select, const Expr* expr, bool may_join);
  const Expr* AddInitPlan(const Expr& sublink);
  const Expr* RunSubqueriesBefore(const Expr* expr, const char* clause);
  const OnConflict* RunSubqueriesBefore(const OnConflict* conflict);
  // How a subquery's WHERE refers to the query around it, if by equalities only.
  struct Correlation {
    std::vector<const Expr*> own;   // conjuncts that refer to nothing outside
    std::vector<const Expr*> keys;  // the subquery's sides of the others
    std::vector<const Expr*> outer_sides, operators_of;
    const Expr* Condition(size_t i, const Expr* key_column, Arena* arena) const;
  };
  std::optional<Correlation> FindCorrelation(const Query& query);

  // view_sublink.cc: live views' subqueries in expressions
  bool joins_sublinks() const { return request_.for_view && lateral_depth_ == 0; }
  const Expr* JoinSublinks(Select& select, const Expr* expr);
  const Expr* ReplaceBelowGroups(Select& select, const Expr* expr);
  const Expr* JoinUncorrelated(Select& select, const Expr& sublink);
  const Expr* JoinByKeys(Select& select, const Expr& sublink);
  const Expr* OnlyValue(const Expr* several, const Expr* value);
  const Query* QueryOver(const Query& query, const Expr* target, int64_t limit);
  const Query* SplitAboveGroups(const Query& query);
  int AddDerived(Select& select, const Query& query);
  const Expr* ColumnOfRel(const Select& select, int rel, int column);
  JoinNode* JoinRel(Select& select, int rel, JoinType type);

  // apply.cc: what runs once for each outer row
  const Expr* BindParam(const Expr* outer, BoundParams* bound);
  const Query* BindQuery(const Query& query, uint64_t rels, BoundParams* bound);
  const Expr* MakeSubPlan(Select& select, const Expr& sublink);
  void AddTest(const Expr& sublink, std::span<const Expr* const> left, const Local& rows,
               SubPlan* plan, BoundParams* bound);
  std::vector<const Expr*> LateralColumns(const Select& select, const JoinNode& node) const;
  Select BindLateral(const Select& select, JoinNode* node, BoundParams* bound);
  Piece JoinLateral(const Select& select, Piece& left, JoinNode* node, JoinType type,
                    const std::vector<const Expr*>& quals,
                    const std::vector<const Expr*>& conditions,
                    const std::vector<const Expr*>& required);
  void AddIndex(const FilterPlan& filter, MaterializePlan* rows);
  sluice::Plan* Keep(sluice::Plan* plan);
  sluice::Plan* MakeRescannable(sluice::Plan* plan, const std::set<int>& changing);
  void Parameterize(sluice::Plan* plan);
  void ParameterizeSubPlan(SubPlan* sub_plan);

  // setop.cc
  Local PlanSetOp(const Query& query);
  Local PlanRecursive(const Query& query);
  Local PlanSetOpTree(const Query& query, const SetOpTree& tree);
  void FlattenUnion(const Query& query, const SetOpTree& tree, bool all,
                    std::vector<Local>* children);

  // prune.cc
  std::vector<const Relation*> Prune(const QueryRel& rel, int index,
                                     const std::vector<const Expr*>& quals);
  const std::vector<const Expr*>& KeyExpressions(const Relation& relation);
  const std::vector<const Expr*>& KeysOver(const QueryRel& rel, int index,
                                           const Relation& relation);

  // join.cc
  Piece PlanFrom(const Select& select, const std::vector<const Expr*>& required);
  Piece PlanNode(const Select& select, JoinNode* node, std::vector<const Expr*> quals,
                 const std::vector<const Expr*>& required);
  Piece PlanLeaf(const Select& select, int rel, const std::vector<const Expr*>& quals);
  Piece PlanOuterJoin(const Select& select, JoinNode* node, std::vector<const Expr*> quals,
                      const std::vector<const Expr*>& required);
  Piece PlanInnerJoins(const Select& select, JoinNode* node, std::vector<const Expr*> quals,
                       const std::vector<const Expr*>& required);
  Piece Join(const Select& select, Piece& left, Piece& right, JoinType type,
             std::vector<const Expr*> conditions, bool null_aware,
             const std::vector<const Expr*>& required);
  Piece JoinLocally(const Select& select, Piece& left, Piece& right, JoinType type,
                    const std::vector<const Expr*>& conditions, bool null_aware,
                    const std::vector<const Expr*>& required);
  void LiftConditions(JoinNode* node, std::vector<const Expr*>* on);
  Piece JoinedPiece(sluice::Plan* join, const Local& outer, const Local& inner, JoinType type,
                    uint64_t rels, double rows);
  void AddEqualConstants(std::vector<const Expr*>* quals);
  double JoinRows(const Select& select, const Piece& left, const Piece& right, JoinType type,
                  const std::vector<const Expr*>& conditions) const;

  // base_rel.cc: one rel
  Piece PlanTable(const Select& select, int rel, const std::vector<const Expr*>& quals);
  Piece PlanStored(const Select& select, int rel, const std::vector<const Expr*>& quals);
  void ChooseIndex(const Relation& view, int rel, const std::vector<const Expr*>& quals,
                   ViewScanPlan* scan);
  // `subquery`: instead of the rel's own.
  Piece PlanOtherRel(const Select& select, int rel, const Query* subquery);
  const Query* PushIntoSubquery(const Select& select, int rel, std::vector<const Expr*>* quals);
  void FilterPiece(const Select& select, Piece& piece, const std::vector<const Expr*>& quals);
  double Selectivity(const Select& select, const Expr* qual) const;
  // Of a column: from the shards' statistics; 0 unknown.
  double DistinctValues(const Select& select, const Expr* expr, double rows) const;

  // colocate.cc
  bool TryColocate(const Select& select, const Piece& left, const Piece& right, JoinType type,
                   const std::vector<const Expr*>& conditions, Piece* out);
  bool AlignShards(const Select& select, const Piece& left, const Piece& right, JoinType type,
                   const std::vector<const Expr*>& conditions, Piece* out);
  bool SameKey(const Select& select, int left_rel, int right_rel,
               const std::vector<const Expr*>& conditions);

  // scan.cc
  Local ToLocal(const Select& select, const Piece& piece, const std::vector<const Expr*>& wanted);
  Local MakeScans(const Select& select, const RemoteSelect& remote, bool ordered);
  void CheckRowMarks(const Select& select, const Piece& piece);
  ForeignScanPlan* MakeScan(const Select& select, const RemoteSelect& remote, const Shard& shard,
                            const std::string& extra_condition);
  ForeignScanPlan* MakeLinesScan(const Select& select, const RemoteSelect& remote,
                                 const Relation& leaf);
  std::string RelationNames(const Select& select, const JoinTree& tree, const Shard& shard) const;
  Local EmptyResult(const std::vector<const Expr*>& provides);

  // upper.cc: aggregation to LIMIT
  Local PlanSelect(const Query& query, bool top);
  Local PlanUpper(const Select& select, bool top);
  Local PlanWithoutFrom(const Select& select);
  Local PlanRemoteRows(const Select& select, RemoteSelect remote, bool top);
  Local FinishLocal(const Select& select, Local input, bool sorted, bool deduplicated);
  Local Deduplicate(Local input);
  void AddDependentColumns(const Select& select, std::vector<const Expr*>* groups);
  bool CoversKey(const Select& select, const Piece& piece, const std::vector<const Expr*>& exprs);
  bool TryWholeAggregate(const Select& select, const Piece& base,
                         const std::vector<const Expr*>& groups, RemoteSelect* remote);
  std::optional<int64_t> RowBound(const Select& select) const;

  // aggregate.cc
  Local PlanAggregate(const Select& select, const Piece& base,
                      const std::vector<const Expr*>& groups,
                      const std::vector<const Expr*>& aggregates);
  bool TryPartialOnShards(const Select& select, const Piece& base,
                          const std::vector<const Expr*>& groups,
                          const std::vector<const Expr*>& aggregates, Local* out);
  bool TryDistinctOnShards(const Select& select, const Piece& base,
                           const std::vector<const Expr*>& groups,
                           const std::vector<const Expr*>& aggregates, Local* out);
  double GroupCount(const Select& select, const std::vector<const Expr*>& groups,
                    double rows) const;
  Local AggregateLocally(Local input, const std::vector<const Expr*>& groups,
                         const std::vector<const Expr*>& aggregates,
                         std::span<const std::span<const int>> grouping_sets = {});
  void ExpandGrouping(Select& select);

  // window.cc
  std::vector<const Expr*> WindowInputs(const Select& select);
  Local PlanWindows(const Select& select, Local input);
  Local PlanWindow(const Select& select, const WindowClause& window,
                   const std::vector<const Expr*>& calls, Local input);
  std::vector<SortKey> PartitionKeys(const Select& select, const WindowClause& window,
                                     const Local& input);
  int PlaceOf(const Local& input, const Expr& expr);
  void SetRangeFrame(const WindowClause& window, const Expr& key, const Local& input,
                     WindowAggPlan* node);
  WindowCall MakeWindowCall(const Expr& call, const Local& input);
  bool TryWindowsOnShards(const Select& select, const Piece& base, RemoteSelect* remote);

  // nodes.cc: nodes over Locals
  template <typename Node>
  Node* NewNode(PlanKind kind);
  void SetChildren(sluice::Plan* plan, std::vector<const sluice::Plan*> children);
  void SetOutput(sluice::Plan* plan, const std::vector<const Expr*>& exprs);
  const Expr* Lower(const Expr* expr, const Local& input, const Local* inner = nullptr);

  // shard_expression.cc
  const Expr* ComputeOnShard(const Expr* expr);
  const Expr* AddShardExpression(const Expr& expr);
  // A parameter that stands for a value of `value`'s type.
  Expr* NewExecParam(int number, const Expr& value);
  std::span<const Expr* const> LowerAll(const std::vector<const Expr*>& exprs, const Local& input);
  const Expr* LowerConjuncts(const std::vector<const Expr*>& conjuncts, const Local& input,
                             const Local* inner = nullptr);
  Local Filter(Local input, const std::vector<const Expr*>& conjuncts);
  Local Project(Local input, const std::vector<const Expr*>& exprs);
  Local Sort(Local input, std::vector<SortKey> keys, std::optional<int64_t> bound);
  Local Limit(Local input, const Select& select, const std::vector<SortKey>& keys);
  Local DistinctRows(Local input);
  Local MakeAppend(std::vector<Local> children);
  Local Gather(Local input);
  Local GatherMerge(Local input, const std::vector<SortKey>& keys);
  // Whether every participant of a Gather can run a share of `plan`; MakePartial makes it so.
  bool CanBePartial(const sluice::Plan& plan) const;
  sluice::Plan* MakePartial(sluice::Plan* plan);
  sluice::Plan* MakeFragment(sluice::Plan* plan);
  bool WorthWorkers(const sluice::Plan& plan) const;
  double ScannedRows(const sluice::Plan& plan) const;

  bool IsShippable(const Expr* expr) const;
  bool CanComputeHere(const Expr& expr) const;
  bool AllShippable(const std::vector<const Expr*>& exprs) const;
  std::span<const SortKey> CopyKeys(const std::vector<SortKey>& keys);
  const Server& ServerOf(Oid server) const;
  EvaluationInput Evaluation(bool with_params);

  // UPDATE's and DELETE's target while its rows are looked for: the scan that reads it locks them.
  struct Locked {
    const Select* select = nullptr;
    int rel = -1;
  } locked_;
  const Select* naming_ = nullptr;  // whose columns the nodes being made show

  const PlanRequest& request_;
  const Catalog& catalog_;
  const PlannerSettings& settings_;
  Arena& arena_;               // the plan's
  Arena scratch_;              // expressions in work
  Arena* values_ = &scratch_;  // what they come to, with parameters
  std::vector<std::unique_ptr<JoinNode>> join_nodes_;
  std::vector<InitPlan> init_plans_;
  // Where statements that write compute what cannot be computed here, and what they have asked.
  Oid compute_server_ = kInvalidOid;
  std::vector<std::pair<const Expr*, const Expr*>> shard_expressions_;
  // Data-modifying WITH queries, in order; `query` with what it refers to inlined.
  struct ModifyingCte {
    const Query* query;
    sluice::Plan* plan = nullptr;
    int scans = 0;
  };
  std::vector<ModifyingCte> modifying_ctes_;
  int lateral_depth_ = 0;  // above 0: what is being planned runs once for each outer row
  int work_table_count_ = 0;
  std::map<int, int> work_table_params_;  // of the recursive queries being planned
  std::vector<SubPlan> sub_plans_;
  std::set<const SubPlan*> parameterized_;
  std::set<int> numbered_;                               // of sub_plans_
  std::map<const Expr*, const Expr*> init_plan_params_;  // sublink → what stands for it
  std::map<Oid, std::vector<const Expr*>> key_expressions_;
  std::map<std::pair<Oid, const QueryRel*>, std::vector<const Expr*>> keys_over_rels_;
  int exec_param_count_ = 0;
  int node_count_ = 0;
  PlannedStatement* statement_ = nullptr;
};

// Whether `query` refers to columns of enclosing queries; whether to a per-row parameter.
bool IsCorrelated(const Query& query);
bool DependsOnRow(const Query& query);
// Whether `expr` needs a per-row parameter or a sub plan: what only the leader can compute.
bool RunsPerRow(const Expr* expr);
// An oid of a shard would be shown by the name of something of ours, or of another shard's. As
// text, passed through, it is the shard's own word. Throws where a scan below would give such.
void RefuseObjectNamesOfShards(const sluice::Plan& plan);
// Not regtype, which pg_typeof gives: built-in types have the same oids everywhere.
bool NamesShardsObjects(Oid type);
// What the leader alone can compute: functions of the system catalogs, and the names of objects
// (regclass and its kin), which are oids as long as nothing looks at them.
bool RunsInSession(const Expr& expr);
// Makes the two sides of the equality `condition` hash alike, if their types can.
bool AlignHashKeys(const Expr& condition, const Expr** a, const Expr** b, Arena* arena);
// Whether values that are equal are also the same to every function (1.0 and 1.00 are not).
bool EqualMeansSame(Oid type);
uint64_t RelsOfNode(const JoinNode& node);
void CollectColumns(const Expr* expr, std::vector<const Expr*>* columns);
void AddUnique(const Expr* expr, std::vector<const Expr*>* to);

template <typename Node>
Node* Planner::NewNode(PlanKind kind) {
  Node* node = arena_.New<Node>();
  node->kind = kind;
  return node;
}

}  // namespace sluice
