// nextval, currval, lastval, setval: once for each row. A batch of rows takes its values at once.
#pragma once

namespace sluice {

// Before anything asks for a kernel.
void RegisterSequenceKernels();
// DISCARD SEQUENCES: what currval() and lastval() of this session know.
void ForgetSequences();

}  // namespace sluice
