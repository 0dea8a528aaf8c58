// Values as bytes whose order (memcmp) is the values' order and whose equality is SQL's: -0 = 0,
// 1.0 = 1.00, '1 month' = '30 days', no trailing blanks of char(n). Each value is self-delimiting,
// so that a key of several columns is compared column by column and no key is a prefix of another
// one of the same columns.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/column.h"

namespace sluice {

class Collator;  // types/collation.h

struct KeyColumn {
  Oid type;
  bool descending = false;
  bool nulls_first = false;
  // The order that the encoding has. Only equality matters: leave it C.
  Oid collation = kCCollationOid;
};

// Whether equality has an encoding, and whether there is one in the values' order under a collation
// (KeyColumn::collation).
bool CanEncodeKey(Oid type);
bool EncodesOrder(Oid type, Oid collation);

class KeyEncoder {
 public:
  // Throws 0A000 by name for types without an encoding.
  explicit KeyEncoder(std::vector<KeyColumn> columns);
  explicit KeyEncoder(std::span<const Oid> types);

  size_t column_count() const { return columns_.size(); }
  void Append(std::span<const Column> values, size_t row, std::string* out) const;
  void AppendColumn(size_t column, const Column& values, size_t row, std::string* out) const;

 private:
  std::vector<KeyColumn> columns_;
  std::vector<const Collator*> collators_;  // of text in another order than that of bytes
  mutable std::string sort_key_;
};

// LMDB's keys have at most 511 bytes. A longer one is cut, with a digest of the whole behind; the
// whole is kept in the value and compared. Long keys agree in their first bytes with the order.
inline constexpr size_t kStoredKeyMax = 500, kKeyDigestBytes = 32;
inline constexpr size_t kCutKeyBytes = kStoredKeyMax - kKeyDigestBytes;
std::string_view StoredKey(std::string_view key, std::string* buffer);
inline bool IsLongKey(std::string_view key) {
  return key.size() >= kStoredKeyMax;
}

// A key that other bytes are to follow: at most kKeyPrefixMax bytes, still self-delimiting. (The
// state that belongs to it keeps the whole and compares.)
inline constexpr size_t kKeyPrefixMax = 200;
void AppendKeyPrefix(std::string_view key, std::string* out);

}  // namespace sluice
