#include "types/kernel_registry.h"

#include "common/assert.h"

namespace sluice {
namespace {

std::span<const Kernel> registered;

struct Registry {
  std::vector<const Kernel*> all;  // by function oid

  Registry() {
    for (std::span<const Kernel> table :
         {ComparisonKernels(), IntegerKernels(), FloatKernels(), NumericKernels(), CastKernels(),
          TextKernels(), TextFormatKernels(), PatternKernels(), DateTimeKernels(),
          DateTimePartKernels(), MiscKernels(), ArrayKernels(), JsonKernels(), ToCharKernels(),
          VolatileKernels(), registered}) {
      for (const Kernel& kernel : table) all.push_back(&kernel);
    }
    std::sort(all.begin(), all.end(),
              [](const Kernel* a, const Kernel* b) { return a->function < b->function; });
    for (size_t i = 1; i < all.size(); i++) SLUICE_ASSERT(all[i - 1]->function != all[i]->function);
  }
};

const Registry& TheRegistry() {
  static const auto* registry = new Registry();
  return *registry;
}

}  // namespace

void RegisterKernels(std::span<const Kernel> kernels) {
  registered = kernels;
}

bool NeedsSession(Oid function) {
  return std::any_of(registered.begin(), registered.end(),
                     [&](const Kernel& kernel) { return kernel.function == function; });
}

const Kernel* FindKernel(Oid function) {
  const auto& all = TheRegistry().all;
  auto found =
      std::lower_bound(all.begin(), all.end(), function,
                       [](const Kernel* kernel, Oid oid) { return kernel->function < oid; });
  return found != all.end() && (*found)->function == function ? *found : nullptr;
}

std::span<const Kernel* const> AllKernels() {
  return TheRegistry().all;
}

}  // namespace sluice
