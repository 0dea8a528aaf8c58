// Raw trees back to SQL text, by libpg_query's deparser.
#pragma once

#include <memory>
#include <pg_query/pg_query.pb-c.h>
#include <string>

namespace sluice {

using RawNode = PgQuery__Node;

struct FreeNode {
  void operator()(RawNode* node) const { pg_query__node__free_unpacked(node, nullptr); }
};
using OwnedNode = std::unique_ptr<RawNode, FreeNode>;

OwnedNode CopyNode(const RawNode* node);
// Both throw 0A000 where the deparser cannot write the tree.
std::string DeparseStatement(const RawNode* statement);
std::string DeparseExpression(const RawNode* expression);

}  // namespace sluice
