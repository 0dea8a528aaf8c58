// The values of sequences: one small file a sequence, in the data directory. Not transactional, and
// shared by all processes.
//
// A value is handed out only when the disk knows that it may be: the file's durable `reserved` is
// ahead of its `last`, which is written without waiting for the disk. After a crash of the machine
// (another boot id) values go on after `reserved`, so that none is given twice; a killed process
// loses nothing. The faster values are asked for, the further ahead is reserved.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "catalog/table_objects.h"
#include "common/fd.h"

namespace sluice {

class SequenceValues {
 public:
  explicit SequenceValues(std::string directory) : directory_(std::move(directory)) {}

  // first, first + increment, …: at least one value, at most `count`. Throws 2200H at the end of a
  // sequence that does not cycle.
  struct Range {
    int64_t first = 0, count = 0;
  };
  Range Next(const Sequence& sequence, int64_t count);

  struct State {
    int64_t last = 0;
    bool is_called = false;
  };
  void Set(const Sequence& sequence, State state);
  State Get(const Sequence& sequence);

 private:
  struct Record;
  class Locked;

  std::string directory_;
  std::map<Oid, UniqueFd> files_;  // by Sequence::storage
};

}  // namespace sluice
