// An error that ends the session, not only the statement.
#pragma once

#include "common/error.h"

namespace sluice {

struct FatalError {
  Error error;
};

}  // namespace sluice
