// How a node gets its children: from its plan, or, in tests, ready made.
#pragma once

#include "executor/node.h"

namespace sluice {

inline std::unique_ptr<Node> GivenOrMade(std::unique_ptr<Node> given, const Plan& plan,
                                         size_t child, ExecutionState& state) {
  if (given != nullptr) return given;
  return MakeNode(*plan.children[child], state);
}

}  // namespace sluice
