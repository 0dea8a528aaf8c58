// Postgres's extended hash functions, as hash partitioning uses them: the shards and older set-ups
// placed their rows by these, so they must agree bit by bit (tested against
// satisfies_hash_partition). The mixing is Bob Jenkins's lookup3.
#include <bit>
#include <cmath>
#include <limits>

#include "catalog/partition.h"
#include "common/bytes.h"
#include "types/column.h"

namespace sluice {

namespace {

constexpr uint64_t kPartitionSeed = 0x7A5B22367996DCFD;
constexpr int64_t kDayMicroseconds = 86'400'000'000;

struct Lookup3 {
  uint32_t a, b, c;

  Lookup3(uint32_t length, uint64_t seed) {
    a = b = c = 0x9e3779b9u + length + 3923095u;
    if (seed == 0) return;
    a += static_cast<uint32_t>(seed >> 32);
    b += static_cast<uint32_t>(seed);
    Mix();
  }
  void Mix() {
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  uint64_t Finish() {
    c ^= b, c -= std::rotl(b, 14);
    a ^= c, a -= std::rotl(c, 11);
    b ^= a, b -= std::rotl(a, 25);
    c ^= b, c -= std::rotl(b, 16);
    a ^= c, a -= std::rotl(c, 4);
    b ^= a, b -= std::rotl(a, 14);
    c ^= b, c -= std::rotl(b, 24);
    return (uint64_t{b} << 32) | c;
  }
};

uint64_t HashWord(uint32_t word) {
  Lookup3 state(4, kPartitionSeed);
  state.a += word;
  return state.Finish();
}

uint64_t HashBytes(std::string_view bytes) {
  Lookup3 state(static_cast<uint32_t>(bytes.size()), kPartitionSeed);
  auto at = [&](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[i])}; };
  while (bytes.size() >= 12) {
    uint32_t words[3];
    std::memcpy(words, bytes.data(), 12);
    state.a += words[0];
    state.b += words[1];
    state.c += words[2];
    state.Mix();
    bytes.remove_prefix(12);
  }
  // The lowest byte of c belongs to the length.
  for (size_t i = 0; i < bytes.size(); i++) {
    if (i < 4)
      state.a += at(i) << (8 * i);
    else if (i < 8)
      state.b += at(i) << (8 * (i - 4));
    else
      state.c += at(i) << (8 * (i - 7));
  }
  return state.Finish();
}

// Folded so that equal int2, int4 and int8 hash alike.
uint64_t HashInt8(int64_t value) {
  uint32_t low = static_cast<uint32_t>(value), high = static_cast<uint32_t>(value >> 32);
  return HashWord(low ^ (value >= 0 ? high : ~high));
}

uint64_t HashFloat8(double value) {
  if (value == 0) return kPartitionSeed;
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return HashBytes({reinterpret_cast<const char*>(&value), sizeof value});
}

// Equal numerics of different scales have the same digits once zeros at both ends are gone.
std::optional<uint64_t> HashNumeric(std::string_view wire) {
  if (wire.size() < 8) return std::nullopt;
  int count = LoadBig<int16_t>(wire.data()), weight = LoadBig<int16_t>(wire.data() + 2);
  uint16_t sign = LoadBig<uint16_t>(wire.data() + 4);
  if (sign != 0 && sign != 0x4000) return kPartitionSeed;  // NaN, infinities
  if (count < 0 || wire.size() != 8 + 2 * static_cast<size_t>(count)) return std::nullopt;
  std::vector<int16_t> digits(count);
  for (int i = 0; i < count; i++) digits[i] = LoadBig<int16_t>(wire.data() + 8 + 2 * i);
  size_t first = 0, end = digits.size();
  while (first < end && digits[first] == 0) first++, weight--;
  if (first == end) return kPartitionSeed - 1;
  while (digits[end - 1] == 0) end--;
  uint64_t hash = HashBytes({reinterpret_cast<const char*>(&digits[first]), 2 * (end - first)});
  return hash ^ static_cast<uint64_t>(static_cast<int64_t>(weight));
}

uint64_t HashInterval(std::string_view wire) {
  __int128 span = static_cast<__int128>(LoadBig<int32_t>(wire.data() + 12)) * 30 +
                  LoadBig<int32_t>(wire.data() + 8);
  span = span * kDayMicroseconds + LoadBig<int64_t>(wire.data());
  return HashInt8(static_cast<int64_t>(span));
}

std::optional<uint64_t> HashValue(Oid type, std::string_view wire) {
  auto is = [&](size_t size) { return wire.size() == size; };
  switch (type) {
    case kBoolOid:
    case kCharOid:
      if (!is(1)) break;
      return HashWord(
          static_cast<uint32_t>(static_cast<int32_t>(static_cast<signed char>(wire[0]))));
    case kInt2Oid:
      if (!is(2)) break;
      return HashWord(static_cast<uint32_t>(int32_t{LoadBig<int16_t>(wire.data())}));
    case kInt4Oid:
    case kDateOid:
    case kOidOid:
      if (!is(4)) break;
      return HashWord(LoadBig<uint32_t>(wire.data()));
    case kInt8Oid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
      if (!is(8)) break;
      return HashInt8(LoadBig<int64_t>(wire.data()));
    case kFloat4Oid:
      if (!is(4)) break;
      return HashFloat8(std::bit_cast<float>(LoadBig<uint32_t>(wire.data())));
    case kFloat8Oid:
      if (!is(8)) break;
      return HashFloat8(std::bit_cast<double>(LoadBig<uint64_t>(wire.data())));
    case kNumericOid:
      return HashNumeric(wire);
    case kIntervalOid:
      if (!is(16)) break;
      return HashInterval(wire);
    case kTextOid:
    case kVarcharOid:
    case kNameOid:
    case kByteaOid:
      return HashBytes(wire);
    case kBpcharOid: {
      size_t end = wire.find_last_not_of(' ');
      return HashBytes(wire.substr(0, end == wire.npos ? 0 : end + 1));
    }
    case kUuidOid:
      if (!is(16)) break;
      return HashBytes(wire);
  }
  return std::nullopt;
}

}  // namespace

bool HasKnownHash(Oid type) {
  switch (type) {
    case kBoolOid:
    case kCharOid:
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
    case kDateOid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
    case kFloat4Oid:
    case kFloat8Oid:
    case kNumericOid:
    case kIntervalOid:
    case kTextOid:
    case kVarcharOid:
    case kNameOid:
    case kByteaOid:
    case kBpcharOid:
    case kUuidOid:
      return true;
    default:
      return false;
  }
}

std::optional<uint64_t> HashPartitionKeys(std::span<const Oid> types,
                                          std::span<const std::optional<std::string_view>> values) {
  uint64_t combined = 0;
  for (size_t i = 0; i < types.size(); i++) {
    if (!values[i]) continue;  // NULL keys leave the hash as it is
    std::optional<uint64_t> hash = HashValue(types[i], *values[i]);
    if (!hash) return std::nullopt;
    combined ^= *hash + 0x49a0f4dd15e5a8e3 + (combined << 54) + (combined >> 7);
  }
  return combined;
}

}  // namespace sluice
