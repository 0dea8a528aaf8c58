// How the kernel files register: each gives its table, kernel_registry.cc merges them by function
// oid.
#pragma once

#include <span>

#include "types/kernel.h"

namespace sluice {

std::span<const Kernel> ComparisonKernels();
std::span<const Kernel> IntegerKernels();
std::span<const Kernel> FloatKernels();
std::span<const Kernel> NumericKernels();
std::span<const Kernel> CastKernels();
std::span<const Kernel> TextKernels();
std::span<const Kernel> TextFormatKernels();
std::span<const Kernel> PatternKernels();
std::span<const Kernel> DateTimeKernels();
std::span<const Kernel> DateTimePartKernels();
std::span<const Kernel> MiscKernels();
std::span<const Kernel> ArrayKernels();
std::span<const Kernel> JsonKernels();
std::span<const Kernel> ToCharKernels();
std::span<const Kernel> VolatileKernels();

// Kernels that need more than types/ has (pg_terminate_backend). By the main program, before the
// first use of the registry; the table must last.
void RegisterKernels(std::span<const Kernel> kernels);
// Whether the function's kernel came from there: it looks at what only a session has (its catalog,
// its settings), so no parallel worker can run it.
bool NeedsSession(Oid function);

}  // namespace sluice
