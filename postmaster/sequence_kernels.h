// nextval, currval, lastval, setval: once for each row. A batch of rows takes its values at once.
#pragma once

#include <span>

#include "types/kernel.h"

namespace sluice {

std::span<const Kernel> SequenceKernels();
// DISCARD SEQUENCES: what currval() and lastval() of this session know.
void ForgetSequences();

}  // namespace sluice
