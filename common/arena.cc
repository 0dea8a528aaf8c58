#include "common/arena.h"

#include <algorithm>
#include <cstdlib>

#include "common/error.h"

namespace sluice {
namespace {

class HeapBlockSource : public BlockSource {
 public:
  Block Acquire(size_t size_bytes_min) override {
    char* data = static_cast<char*>(std::malloc(size_bytes_min));
    if (data == nullptr) Throw(sqlstate::kOutOfMemory, "out of memory");
    return {data, size_bytes_min};
  }
  void Release(Block block) override { std::free(block.data); }
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
