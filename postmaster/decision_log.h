// The decisions to commit transactions over several servers, durable before the first COMMIT
// PREPARED is sent: files of fixed size in DIR/transactions, written at places that
// processes take from shared memory, each record with its checksum.
//
//   decisions.<n>: records of 128-byte units, in no order; what is no valid record is no decision.
//
// Writers do not wait for each other but in fdatasync, where the kernel lets one flush serve many.
// A file goes when all its decisions are carried out.
#pragma once

#include <string>
#include <vector>

#include "common/error.h"
#include "common/fd.h"
#include "shm/transaction_table.h"

namespace sluice {

struct Decision {
  TransactionNumber number = 0;
  int64_t decided_at = 0;         // µs since 2000-01-01 UTC
  std::vector<uint32_t> servers;  // that take part: oids in the catalog
  // It is decided only if the durable catalog has it among its decisions: its transaction changes
  // the catalog too, and that commits both at once.
  bool by_catalog = false;
};

class DecisionLog {
 public:
  explicit DecisionLog(const std::string& data_directory)
      : directory_(data_directory + "/transactions") {}

  // The postmaster, for each new shared memory: counts the epoch, and makes the node's id if this
  // is the first. Fills transaction_table.
  Status Start();

  // Durable when it returns. 53100, 58030.
  Status Append(const Decision& decision);
  // Not synced: if it is lost, the resolver finds again that there is nothing left to do.
  Status MarkDone(TransactionNumber number);

  // Decided and not marked as done.
  std::vector<Decision> Unfinished() const;
  // Files that hold nothing unfinished and get no more records.
  void RemoveFinished();

 private:
  Status Write(const Decision& decision, bool done, bool sync);
  Status OpenSegment(uint64_t segment);
  std::string PathOf(uint64_t segment) const;
  std::vector<uint64_t> Segments() const;  // in order

  const std::string directory_;
  UniqueFd fd_;
  uint64_t open_segment_ = ~uint64_t{0};
};

}  // namespace sluice
