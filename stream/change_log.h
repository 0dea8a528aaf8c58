// A view's changes, kept for subscribers: what each epoch's net change was, as a table of the
// store.
//
//   epoch, number → time, then [weight, row]…       A large epoch has several entries.
#pragma once

#include <span>

#include "stream/delta_buffer.h"
#include "stream/row_codec.h"
#include "stream/store_record.h"

namespace sluice {

class ChangeLog {
 public:
  ChangeLog(StoreTransaction* transaction, Oid view, ChangeLogMark mark, bool create);

  const ChangeLogMark& mark() const { return mark_; }
  void SetWanted(int64_t now_us) { mark_.wanted_at_us = now_us; }
  void Append(uint64_t epoch, int64_t now_us, std::span<const DeltaBuffer::Entry> changes);
  // Forgets what is older than `before_us`, or some of it. False: there was nothing.
  bool Trim(int64_t before_us);
  void Drop() { table_.Drop(); }

 private:
  LmdbTable table_;
  ChangeLogMark mark_;
  uint64_t epoch_ = 0;  // the last one appended to
  uint32_t number_ = 0;
};

// Of an entry's value.
template <typename Fn>
void ForEachLoggedChange(std::string_view value, Fn&& fn) {
  TakeVarint(&value);  // time
  while (!value.empty()) {
    uint64_t folded = TakeVarint(&value);
    auto weight = static_cast<int64_t>(folded >> 1) * ((folded & 1) != 0 ? -1 : 1);
    fn(weight, TakeBytes(TakeVarint(&value), &value));
  }
}

}  // namespace sluice
