// Memory for an arena that must be read in any order but may grow past work_mem: from the heap up
// to a limit, from there on blocks of a temporary file that is mapped, which the kernel can write
// out. Space in the file is allocated before it is touched, so that a full disk is an error
// (53100).
#pragma once

#include <string>
#include <string_view>

#include "common/arena.h"
#include "common/fd.h"

namespace sluice {

class FileBlocks : public BlockSource {
 public:
  FileBlocks(size_t heap_bytes_max, std::string_view temp_directory)
      : heap_bytes_max_(heap_bytes_max), directory_(temp_directory) {}

  Block Acquire(size_t size_bytes_min) override;
  void Release(Block block) override;

  size_t heap_bytes() const { return heap_bytes_; }
  size_t file_bytes() const { return file_bytes_; }

 private:
  size_t heap_bytes_max_;
  std::string directory_;
  size_t heap_bytes_ = 0;
  size_t file_bytes_ = 0, mapped_bytes_ = 0;  // the file's size; what of it is in use
  UniqueFd fd_;
};

}  // namespace sluice
