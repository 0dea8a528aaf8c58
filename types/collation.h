// Text order and case. A Collator compares with the same provider as the shards: C (bytes), libc,
// or ICU.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "types/oid.h"

namespace sluice {

enum class CollationProvider : char { kC = 'C', kLibc = 'c', kIcu = 'i' };

struct CollationInfo {
  Oid oid;
  CollationProvider provider;
  char locale[64];   // "en_US.UTF-8", "und-x-icu", … ; "C" for kC
  char version[32];  // collversion as the shards report it; "" unknown
};

class Collator {
 public:
  virtual ~Collator() = default;
  // Ties under the locale are broken by bytes, as Postgres's deterministic collations do.
  virtual int Compare(std::string_view a, std::string_view b) const = 0;
  // Whether Compare is the order of bytes.
  virtual bool is_c() const { return false; }
  // lower(), upper() and initcap() under the locale's character classes; ASCII only where not
  // overridden.
  virtual void AppendLower(std::string_view text, std::string* out) const;
  virtual void AppendUpper(std::string_view text, std::string* out) const;
  virtual void AppendInitcap(std::string_view text, std::string* out) const;
};

// Each process registers what its catalog knows (kDefaultCollationOid: the shards' database
// default).
void RegisterCollation(const CollationInfo& info);
// The collator for an oid: kInvalidOid, C and POSIX compare bytes; one not registered, or one whose
// locale this host lacks or has in another version, throws 0A000 by name.
const Collator* FindCollator(Oid collation);
// Whether FindCollator would succeed.
bool CanCollate(Oid collation);

}  // namespace sluice
