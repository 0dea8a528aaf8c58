// Fuzzes what reads bytes from outside in types/: text input, binary input, JSON, patterns,
// aggregate states. The first byte says which, the second the type. What is accepted must survive a
// round trip.
#include <cstdint>

#include "common/assert.h"
#include "common/error.h"
#include "types/codec.h"
#include "types/float_sum.h"
#include "types/json.h"
#include "types/numeric_sum.h"
#include "types/pattern.h"

namespace sluice {
namespace {

constexpr Oid kTypes[] = {
    kBoolOid,          kInt2Oid,        kInt4Oid,       kInt8Oid,         kOidOid,
    kFloat4Oid,        kFloat8Oid,      kNumericOid,    kTextOid,         kBpcharOid,
    kNameOid,          kCharOid,        kByteaOid,      kDateOid,         kTimeOid,
    kTimestampOid,     kTimestamptzOid, kIntervalOid,   kUuidOid,         kJsonOid,
    kJsonbOid,         kInt4ArrayOid,   kTextArrayOid,  kNumericArrayOid, kTimestamptzArrayOid,
    kIntervalArrayOid, kJsonbArrayOid,  kByteaArrayOid,
};

const SessionSettings& Settings() {
  static const SessionSettings settings = [] {
    SessionSettings s;
    strcpy(s.time_zone, "America/New_York");
    return s;
  }();
  return settings;
}

std::string TextOf(Oid type, std::string_view wire, Arena* arena) {
  Column column = MakeConstantColumn(type, wire, false, arena);
  std::string text;
  AppendText(column, 0, Settings(), &text);
  return text;
}

// Text that was accepted, shown and read again, is the same value.
void FuzzText(Oid type, std::string_view text) {
  Arena arena;
  std::string_view wire = ParseText(type, -1, text, Settings(), &arena);
  std::string shown = TextOf(type, wire, &arena);
  if (type == kCharOid) return;  // shows \0 as nothing
  std::string_view again = ParseText(type, -1, shown, Settings(), &arena);
  SLUICE_ASSERT(again == wire);
}

// Bytes that were accepted can be shown, and go out as they came.
void FuzzBinary(Oid type, std::string_view bytes) {
  Arena arena;
  Column column = MakeConstantColumn(type, bytes, false, &arena);
  std::string text, binary;
  AppendText(column, 0, Settings(), &text);
  AppendBinary(column, 0, &binary);
  SLUICE_ASSERT(type == kBoolOid || binary == bytes);
}

void FuzzStates(std::string_view bytes) {
  Arena arena;
  std::string_view rest = bytes;
  NumericMoments numeric = NumericMoments::Deserialize(&rest, &arena);
  std::string_view wire;
  numeric.Stddev(true, &arena, &wire);
  rest = bytes;
  FloatMoments floats = FloatMoments::Deserialize(&rest, &arena);
  double result = 0;
  floats.Stddev(true, &result);
}

void Fuzz(uint8_t what, uint8_t which, std::string_view input) {
  Oid type = kTypes[which % std::size(kTypes)];
  switch (what % 5) {
    case 0:
      return FuzzText(type, input);
    case 1:
      return FuzzBinary(type, input);
    case 2: {
      std::string normal = NormalizeJsonb(input);
      SLUICE_ASSERT(NormalizeJsonb(normal) == normal);
      return;
    }
    case 3: {
      size_t half = input.size() / 2;
      MatchLike(input.substr(0, half), input.substr(half));
      Regex::Compiled(input.substr(half), which % 2 != 0).Matches(input.substr(0, half));
      return;
    }
    default:
      return FuzzStates(input);
  }
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  try {
    sluice::Fuzz(data[0], data[1], {reinterpret_cast<const char*>(data + 2), size - 2});
  } catch (const sluice::QueryError&) {
  }
  return 0;
}
