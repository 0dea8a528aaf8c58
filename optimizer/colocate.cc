// Joins that every shard can do alone: both sides on one server, or both spread by the same rule
// and joined on the partition key.
#include "optimizer/planning.h"

namespace sluice {
namespace {

bool HasSemiJoin(const JoinTree& tree) {
  if (tree.is_leaf) return false;
  return tree.type == JoinType::kSemi || tree.type == JoinType::kAnti || HasSemiJoin(*tree.left) ||
         HasSemiJoin(*tree.right);
}

// The one server of all shards, or 0.
Oid OnlyServer(const Piece& piece) {
  if (piece.shards.empty()) return kInvalidOid;
  for (const Shard& shard : piece.shards)
    if (shard.server != piece.shards[0].server) return kInvalidOid;
  return piece.shards[0].server;
}

// All shards as one: each rel is the union of its tables.
Shard Collapsed(const Piece& piece) {
  Shard all = piece.shards[0];
  for (size_t i = 1; i < piece.shards.size(); i++)
    for (size_t r = 0; r < all.leaves.size(); r++) {
      const auto& more = piece.shards[i].leaves[r].second;
      all.leaves[r].second.insert(all.leaves[r].second.end(), more.begin(), more.end());
    }
  return all;
}

Shard Combined(const Shard& left, const Shard& right) {
  Shard both = left;
  both.leaves.insert(both.leaves.end(), right.leaves.begin(), right.leaves.end());
  return both;
}

bool SameBound(const PartitionBound& a, const PartitionBound& b) {
  auto same_datum = [](const PartitionBound::RangeDatum& x, const PartitionBound::RangeDatum& y) {
    return x.infinite == y.infinite && (x.infinite != 0 || x.value == y.value);
  };
  return a.is_default == b.is_default && a.modulus == b.modulus && a.remainder == b.remainder &&
         a.list == b.list && std::ranges::equal(a.from, b.from, same_datum) &&
         std::ranges::equal(a.to, b.to, same_datum);
}

// The partition of `other` that holds the keys `leaf` of `relation` holds; null where the two
// relations are not spread alike.
const Relation* Counterpart(const Catalog& catalog, const Relation& other, const Relation& leaf) {
  for (Oid oid : other.children) {
    const Relation* child = catalog.FindRelation(oid);
    if (child != nullptr && child->server == leaf.server && SameBound(child->bound, leaf.bound))
      return child;
  }
  return nullptr;
}

bool SpreadAlike(const Catalog& catalog, const Relation& a, const Relation& b) {
  if (a.kind != RelationKind::kPartitioned || b.kind != RelationKind::kPartitioned ||
      a.key.strategy != b.key.strategy || a.key.types != b.key.types ||
      a.children.size() != b.children.size())
    return false;
  for (Oid oid : a.children) {
    const Relation* child = catalog.FindRelation(oid);
    if (child == nullptr || child->kind != RelationKind::kForeignTable) return false;
    const Relation* counterpart = Counterpart(catalog, b, *child);
    if (counterpart == nullptr || counterpart->kind != RelationKind::kForeignTable) return false;
  }
  return true;
}

// Renames the columns of a key expression by order of appearance, so that keys of two relations
// compare.
const Expr* Anonymous(const Expr* key, const std::vector<const Expr*>& columns, Arena* arena) {
  return RewriteExpr(key, arena, [&](const Expr& e, int) -> const Expr* {
    if (e.kind != ExprKind::kColumn) return nullptr;
    for (size_t i = 0; i < columns.size(); i++)
      if (EqualExpr(columns[i], &e))
        return MakeColumn(0, static_cast<int>(i), e.type, -1, e.collation, arena);
    return nullptr;
  });
}

const Shard* FindShard(const std::vector<Shard>& shards, int rel, const Relation* leaf) {
  for (const Shard& shard : shards) {
    const auto* leaves = shard.LeavesOf(rel);
    if (leaves != nullptr && leaves->size() == 1 && (*leaves)[0] == leaf) return &shard;
  }
  return nullptr;
}

}  // namespace

// Whether the two rels' tables are spread by one rule, and `conditions` equate all columns of their
// keys.
bool Planner::SameKey(const Select& select, int left_rel, int right_rel,
                      const std::vector<const Expr*>& conditions) {
  const Relation& left = *select.rels[static_cast<size_t>(left_rel)].table;
  const Relation& right = *select.rels[static_cast<size_t>(right_rel)].table;
  if (!SpreadAlike(catalog_, left, right)) return false;
  const auto& left_keys = KeyExpressions(left);
  const auto& right_keys = KeyExpressions(right);
  if (left_keys.size() != right_keys.size()) return false;
  auto is_column = [](const Expr* expr, int rel, const Expr* column) {
    while (expr->kind == ExprKind::kRelabel) expr = expr->args[0];
    return expr->kind == ExprKind::kColumn && expr->rel == rel && expr->levels_up == 0 &&
           expr->column == column->column;
  };
  for (size_t k = 0; k < left_keys.size(); k++) {
    std::vector<const Expr*> left_columns, right_columns;
    CollectColumns(left_keys[k], &left_columns);
    CollectColumns(right_keys[k], &right_columns);
    if (left_columns.size() != right_columns.size()) return false;
    if (!EqualExpr(Anonymous(left_keys[k], left_columns, &scratch_),
                   Anonymous(right_keys[k], right_columns, &scratch_)))
      return false;
    for (size_t c = 0; c < left_columns.size(); c++) {
      if (left_columns[c]->type != right_columns[c]->type) return false;
      if (left_keys[k] != left_columns[c] && !EqualMeansSame(left_columns[c]->type)) return false;
      bool equated = false;
      for (const Expr* condition : conditions) {
        const Expr *a, *b;
        if (!IsEquality(condition, &a, &b)) continue;
        equated |=
            (is_column(a, left_rel, left_columns[c]) &&
             is_column(b, right_rel, right_columns[c])) ||
            (is_column(b, left_rel, left_columns[c]) && is_column(a, right_rel, right_columns[c]));
      }
      if (!equated) return false;
    }
  }
  return true;
}

const Shard* FindReplica(const Piece& piece, Oid server) {
  for (const Shard& replica : piece.replicas)
    if (replica.server == server) return &replica;
  return nullptr;
}

// One side, or both, is on every server. False: no help for this join.
bool AlignReplicas(const Piece& left, const Piece& right, JoinType type, Piece* out) {
  bool both = !left.replicas.empty() && !right.replicas.empty();
  if (both) {
    for (const Shard& replica : left.replicas)
      if (const Shard* other = FindReplica(right, replica.server))
        out->replicas.push_back(Combined(replica, *other));
    if (out->replicas.empty()) return false;
    out->shards = {out->replicas[0]};
    return true;
  }
  // A row of the replicated side that is preserved would be preserved by every shard, unless the
  // other side is on one only.
  bool keeps_right = type == JoinType::kFull;
  bool keeps_left = type != JoinType::kInner;
  const Piece& spread = right.replicas.empty() ? right : left;
  const Piece& replicated = right.replicas.empty() ? left : right;
  bool kept = &replicated == &left ? keeps_left : keeps_right;
  if (replicated.replicas.empty() || (kept && OnlyServer(spread) == kInvalidOid)) return false;
  bool collapse = OnlyServer(spread) != kInvalidOid;
  for (const Shard& shard : collapse ? std::vector{Collapsed(spread)} : spread.shards) {
    const Shard* replica = FindReplica(replicated, shard.server);
    if (replica == nullptr) return false;
    out->shards.push_back(&replicated == &left ? Combined(*replica, shard)
                                               : Combined(shard, *replica));
  }
  out->key_rels = spread.key_rels;
  return true;
}

// Fills out->shards, out->replicas and out->key_rels.
bool Planner::AlignShards(const Select& select, const Piece& left, const Piece& right,
                          JoinType type, const std::vector<const Expr*>& conditions, Piece* out) {
  Oid server = OnlyServer(left);
  if (server != kInvalidOid && server == OnlyServer(right)) {
    out->shards = {Combined(Collapsed(left), Collapsed(right))};
    // Stays free to go to whichever server the next join needs.
    if (!left.replicas.empty() && !right.replicas.empty()) AlignReplicas(left, right, type, out);
    return true;
  }
  bool keeps_left = type == JoinType::kLeft || type == JoinType::kAnti;
  if (left.shards.empty() && type != JoinType::kFull) return true;
  if (right.shards.empty() && (type == JoinType::kInner || type == JoinType::kSemi)) return true;
  Piece replicated;
  if (AlignReplicas(left, right, type, &replicated)) {
    out->shards = std::move(replicated.shards);
    out->replicas = std::move(replicated.replicas);
    out->key_rels = std::move(replicated.key_rels);
    return true;
  }
  for (int left_rel : left.key_rels)
    for (int right_rel : right.key_rels) {
      if (!SameKey(select, left_rel, right_rel, conditions)) continue;
      const Relation& other = *select.rels[static_cast<size_t>(right_rel)].table;
      std::vector<Shard> shards;
      bool aligned = true;
      for (const Shard& shard : left.shards) {
        const Relation* counterpart = Counterpart(catalog_, other, *(*shard.LeavesOf(left_rel))[0]);
        const Shard* match = FindShard(right.shards, right_rel, counterpart);
        if (match == nullptr && keeps_left)
          match = FindShard(right.unpruned, right_rel, counterpart);
        if (match != nullptr)
          shards.push_back(Combined(shard, *match));
        else if (keeps_left || type == JoinType::kFull)
          aligned = false;
      }
      if (type == JoinType::kFull && right.shards.size() != left.shards.size()) aligned = false;
      if (!aligned) continue;
      out->shards = std::move(shards);
      // A key that an outer join may have made NULL says nothing any more.
      if (type != JoinType::kFull) out->key_rels = left.key_rels;
      if (type == JoinType::kInner)
        out->key_rels.insert(out->key_rels.end(), right.key_rels.begin(), right.key_rels.end());
      return true;
    }
  return false;
}

bool Planner::TryColocate(const Select& select, const Piece& left, const Piece& right,
                          JoinType type, const std::vector<const Expr*>& conditions, Piece* out) {
  if (!settings_.enable_pushdown_join || !left.remote || !right.remote || !left.pushable ||
      !right.pushable)
    return false;
  bool inner = type == JoinType::kInner;
  if (!inner && (!right.local_quals.empty() || HasSemiJoin(*right.tree)) &&
      !(right.local_quals.empty() && (type == JoinType::kSemi || type == JoinType::kAnti)))
    return false;
  if (type == JoinType::kFull && (!left.local_quals.empty() || HasSemiJoin(*left.tree) ||
                                  !left.quals.empty() || !right.quals.empty()))
    return false;
  std::vector<const Expr*> on, local;
  for (const Expr* condition : conditions)
    (IsShippable(condition) ? on : local).push_back(condition);
  if (!inner && !local.empty()) return false;
  Piece joined;
  if (!AlignShards(select, left, right, type, conditions, &joined)) return false;
  joined.rels = left.rels | right.rels;
  joined.remote = true;
  joined.quals = left.quals;
  joined.local_quals = left.local_quals;
  if (inner) {
    joined.quals.insert(joined.quals.end(), right.quals.begin(), right.quals.end());
    joined.local_quals.insert(joined.local_quals.end(), right.local_quals.begin(),
                              right.local_quals.end());
    joined.local_quals.insert(joined.local_quals.end(), local.begin(), local.end());
  } else {
    on.insert(on.end(), right.quals.begin(), right.quals.end());
  }
  JoinTree* tree = scratch_.New<JoinTree>();
  tree->is_leaf = false;
  tree->type = type;
  tree->left = left.tree;
  tree->right = right.tree;
  tree->on = MakeAnd(on, &scratch_);
  joined.tree = tree;
  joined.rows = JoinRows(select, left, right, type, conditions);
  *out = std::move(joined);
  return true;
}

}  // namespace sluice
