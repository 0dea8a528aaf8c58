// Group keys of few bytes packed into 16: comparing and hashing them costs a few instructions,
// whatever the columns are. Only for types whose equality is that of their bytes.
#pragma once

#include <span>
#include <vector>

#include "types/column.h"

namespace sluice {

struct PackedKey {
  uint64_t low = 0, high = 0;
  bool operator==(const PackedKey&) const = default;
};

inline uint64_t HashPackedKey(const PackedKey& key) {
  unsigned __int128 product = static_cast<unsigned __int128>(key.low ^ 0x9e3779b97f4a7c15) *
                              (key.high ^ 0xe7037ed1a0b428db);
  uint64_t folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return folded ^ (folded >> 29);
}

//   byte 0: low 4 bits: which columns are NULL; high 4 bits: length of the string, if there is one
//   then the fixed-width columns, none across the middle; then the string's bytes
class KeyPacker {
 public:
  // Whether keys of these types can be packed at all (strings: as long as each one is short
  // enough).
  static bool CanPack(std::span<const Oid> types);
  explicit KeyPacker(std::span<const Oid> types);

  // keys[i] for each row; rows with too long a string are marked in `too_long` (one byte a row,
  // kBatchRows of them) and counted in the result.
  size_t Pack(std::span<const Column> columns, size_t rows, PackedKey* keys,
              uint8_t* too_long) const;

 private:
  struct Place {
    uint8_t byte;  // of 16; 0 for the string
    uint8_t width_bytes;
  };
  static bool Plan(std::span<const Oid> types, std::vector<Place>* places, size_t* string_at);
  size_t PackString(const Column& column, size_t index, size_t rows, PackedKey* keys,
                    uint8_t* too_long) const;

  std::vector<Place> places_;
  size_t string_at_ = 0;  // byte where a string starts
};

}  // namespace sluice
