// Functions that give each row a value of its own.
#include <cstring>
#include <ctime>
#include <random>
#include <sys/random.h>
#include <unistd.h>

#include "types/datetime.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

void Fill(void* to, size_t size_bytes) {
  if (getrandom(to, size_bytes, 0) != static_cast<ssize_t>(size_bytes))
    Throw(sqlstate::kInternalError, "could not generate random values");
}

// A forked process must not go on where another is.
std::mt19937_64& Generator() {
  static std::mt19937_64 generator;
  static pid_t seeded_by = 0;
  if (seeded_by != getpid()) {
    uint32_t seed[8];
    Fill(seed, sizeof seed);
    std::seed_seq sequence(std::begin(seed), std::end(seed));
    generator.seed(sequence);
    seeded_by = getpid();
  }
  return generator;
}

struct Random {
  double operator()() const { return static_cast<double>(Generator()() >> 11) * 0x1p-53; }
};

struct GenRandomUuid {
  Uuid operator()() const {
    Uuid uuid;
    Fill(uuid.bytes, sizeof uuid.bytes);
    uuid.bytes[6] = static_cast<uint8_t>((uuid.bytes[6] & 0x0f) | 0x40);  // version 4
    uuid.bytes[8] = static_cast<uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);  // variant of RFC 4122
    return uuid;
  }
};

struct ClockTimestamp {
  int64_t operator()() const {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - kPostgresEpochUnixSeconds) * 1'000'000 + now.tv_nsec / 1000;
  }
};

constexpr Kernel kKernels[] = {
    {1598, "random", true, Map<Random, double>},
    {2649, "clock_timestamp", true, Map<ClockTimestamp, int64_t>},
    {3432, "gen_random_uuid", true, Map<GenRandomUuid, Uuid>},
};

}  // namespace

std::span<const Kernel> VolatileKernels() {
  return kKernels;
}

}  // namespace sluice
