#include "common/arena.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "common/error.h"

namespace sluice {
namespace {

// What all arenas of one process may hold: a statement that wants more ends with an error, before
// the kernel ends a process, and with it everybody's.
size_t HeapBytesMax() {
  constexpr size_t kFloorBytes = size_t{2} << 30;  // two values of the largest size
  static const size_t bytes =
      std::max(kFloorBytes, static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                                static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4);
  return bytes;
}

// Of one thread, and a process has one that computes; a block freed by another makes it lenient.
thread_local int64_t held_bytes = 0;

class HeapBlockSource : public BlockSource {
 public:
  Block Acquire(size_t size_bytes_min) override {
    size_t held = static_cast<size_t>(std::max<int64_t>(held_bytes, 0));
    bool too_much = size_bytes_min > HeapBytesMax() || held > HeapBytesMax() - size_bytes_min;
    char* data = too_much ? nullptr : static_cast<char*>(std::malloc(size_bytes_min));
    if (data == nullptr) {
      throw QueryError(MakeError(sqlstate::kOutOfMemory, "out of memory")
                           .Detail(fmt::format(
                               "Failed on request of size {}; this process holds {} of {} bytes.",
                               size_bytes_min, held, HeapBytesMax())));
    }
    held_bytes += static_cast<int64_t>(size_bytes_min);
    return {data, size_bytes_min};
  }
  void Release(Block block) override {
    held_bytes -= static_cast<int64_t>(block.size_bytes);
    std::free(block.data);
  }
};

}  // namespace

BlockSource& HeapBlocks() {
  static HeapBlockSource source;
  return source;
}

Arena::~Arena() {
  for (auto block : blocks_) source_.Release(block);
}

void* Arena::AllocateSlow(size_t size_bytes, size_t alignment) {
  size_t wanted = std::max(block_size_bytes_, size_bytes + alignment);
  blocks_.push_back(source_.Acquire(wanted));
  next_ = blocks_.back().data;
  end_ = next_ + blocks_.back().size_bytes;
  allocated_bytes_ += blocks_.back().size_bytes;
  return Allocate(size_bytes, alignment);
}

void Arena::Reset() {
  while (blocks_.size() > 1) {
    allocated_bytes_ -= blocks_.back().size_bytes;
    source_.Release(blocks_.back());
    blocks_.pop_back();
  }
  next_ = blocks_.empty() ? nullptr : blocks_[0].data;
  end_ = blocks_.empty() ? nullptr : next_ + blocks_[0].size_bytes;
}

}  // namespace sluice
