// Slices of a stream's messages put aside in a temporary file, to be taken in the same order: what
// becomes of a result that its client does not read while others wait for the chunks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "shm/ready_queue.h"

namespace sluice {

class SliceFile {
 public:
  explicit SliceFile(std::string_view temp_directory) : directory_(temp_directory) {}

  // The bytes are copied; the slice stays the caller's. Throws 53100 where the disk is full.
  void Append(const Slice& slice);
  // The first that was not taken, as a slice that holds no chunk: valid until the next call. False:
  // there is none.
  bool Take(Slice* slice);

  bool empty() const { return read_at_ == write_at_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  struct Record {  // before each slice's bytes
    uint64_t size_bytes;
    uint32_t rows;
    uint16_t stream;
    SliceKind kind;
  };

  void Write(const void* data, size_t size_bytes);
  void Read(void* data, size_t size_bytes);

  std::string directory_;
  UniqueFd fd_;
  uint64_t write_at_ = 0, read_at_ = 0, bytes_written_ = 0;
  std::vector<char> buffer_;  // the slice that was taken last
};

}  // namespace sluice
