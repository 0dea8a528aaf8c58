#include "common/scheduling.h"

#include <cstdint>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice {
namespace {

// The kernel's struct sched_attr (sched_setattr(2)); glibc 2.36 does not declare it.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;
  uint64_t deadline_ns;
  uint64_t period_ns;
};

constexpr uint64_t kShortSliceNs = 100'000;  // the least that the kernel takes

}  // namespace

void RequestShortTimeSlices() {
  SchedulingAttributes attributes{};
  // As it is now (the nice value above all), with another slice.
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof attributes;
  attributes.runtime_ns = kShortSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace sluice
