// Analysed queries as text (s-expressions), for tests and for looking at them.
#pragma once

#include <string>

#include "parser/query.h"

namespace sluice {

std::string PrintExpr(const Expr& expr);
std::string PrintQuery(const Query& query);

}  // namespace sluice
