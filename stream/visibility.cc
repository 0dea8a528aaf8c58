#include "stream/visibility.h"

#include <algorithm>
#include <charconv>

#include "common/error.h"

namespace sluice {
namespace {

[[noreturn]] void Malformed(std::string_view text) {
  Throw(sqlstate::kInvalidTextRepresentation, "invalid input syntax for type pg_snapshot: \"{}\"",
        text);
}

}  // namespace

ShardSnapshot ShardSnapshot::Parse(std::string_view text) {
  std::string_view rest = text;
  auto number = [&] {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) Malformed(text);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return value;
  };
  auto expect = [&](char c) {
    if (rest.empty() || rest[0] != c) Malformed(text);
    rest.remove_prefix(1);
  };
  ShardSnapshot snapshot;
  snapshot.xmin_ = number();
  expect(':');
  snapshot.xmax_ = number();
  expect(':');
  while (!rest.empty()) {
    if (!snapshot.running_.empty()) expect(',');
    snapshot.running_.push_back(number());
  }
  std::sort(snapshot.running_.begin(), snapshot.running_.end());
  return snapshot;
}

bool ShardSnapshot::Sees(uint32_t xid) const {
  auto distance = static_cast<int32_t>(xid - static_cast<uint32_t>(xmax_));
  if (distance >= 0) return false;
  uint64_t full = xmax_ + static_cast<uint64_t>(int64_t{distance});
  if (full < xmin_) return true;
  return !std::binary_search(running_.begin(), running_.end(), full);
}

}  // namespace sluice
