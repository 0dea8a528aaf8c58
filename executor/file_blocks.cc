#include "executor/file_blocks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "executor/spill.h"

namespace sluice {
namespace {

constexpr size_t kFileBlockBytes = 4 << 20;

}  // namespace

BlockSource::Block FileBlocks::Acquire(size_t size_bytes_min) {
  if (heap_bytes_ + size_bytes_min <= heap_bytes_max_) {
    Block block = HeapBlocks().Acquire(size_bytes_min);
    heap_bytes_ += block.size_bytes;
    return block;
  }
  if (!fd_.valid()) fd_ = OpenTemporaryFile(directory_);
  size_t bytes = (size_bytes_min + kFileBlockBytes - 1) / kFileBlockBytes * kFileBlockBytes;
  int error =
      ::posix_fallocate(fd_.get(), static_cast<off_t>(file_bytes_), static_cast<off_t>(bytes));
  if (error != 0) ThrowFileError("extend", error);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
                      static_cast<off_t>(file_bytes_));
  if (data == MAP_FAILED) ThrowFileError("map", errno);
  file_bytes_ += bytes;
  mapped_bytes_ += bytes;
  return {static_cast<char*>(data), bytes};
}

// Blocks of the file are as large as its unit; the heap's are smaller.
void FileBlocks::Release(Block block) {
  if (block.size_bytes % kFileBlockBytes != 0) {
    heap_bytes_ -= block.size_bytes;
    return HeapBlocks().Release(block);
  }
  ::munmap(block.data, block.size_bytes);
  mapped_bytes_ -= block.size_bytes;
  if (mapped_bytes_ > 0) return;
  fd_.Reset(-1);  // nothing refers to the file: its space is free
  file_bytes_ = 0;
}

}  // namespace sluice
