// What does not fit into work_mem: rows written to temporary files and read back in order.
//
// A file has no name from the start (O_TMPFILE, or unlinked at once), so nothing is left behind by
// a process that is killed. Only files that other processes will read have one, until they are
// opened there. Errors: 53100 where the disk is full, 58030 for the rest.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "executor/row_layout.h"

namespace sluice {

// A temporary file without a name; what a failed call on one is told as.
UniqueFd OpenTemporaryFile(const std::string& directory);
[[noreturn]] void ThrowFileError(const char* what, int error);

class SpillFile {
 public:
  // `layout` must outlive the file. Rows carry a 64-bit tag (a hash, say) of the user's.
  SpillFile(const RowLayout* layout, std::string_view temp_directory);

  // A file with a name, for Publish().
  SpillFile(const RowLayout* layout, std::string path, bool published);
  // What another process published; its name is removed.
  static std::unique_ptr<SpillFile> OpenPublished(const RowLayout* layout, const std::string& path,
                                                  uint64_t row_count);

  void Append(const char* row, uint64_t tag);
  uint64_t row_count() const { return row_count_; }
  uint64_t bytes() const { return bytes_; }

  // Writes out what is buffered, so that a file that waits for its turn holds no memory.
  void Seal();
  // All rows are in the file, for others to read; no file if there are no rows. Nothing may be
  // appended.
  void Publish();
  // From the first row on. After it nothing may be appended.
  void StartReading();
  // Up to `rows_max` rows, into memory of this object: valid until the next call. 0 at the end.
  size_t Read(size_t rows_max, char** rows, uint64_t* tags);

 private:
  struct Record {  // before each row
    uint64_t tag;
    uint64_t row_bytes;
  };

  void Flush();
  bool Fill(size_t bytes_min);

  const RowLayout* layout_;
  std::string directory_or_path_;
  bool published_ = false;  // has a name
  UniqueFd fd_;
  uint64_t row_count_ = 0, bytes_ = 0, rows_read_ = 0;
  uint64_t file_at_ = 0;
  std::vector<char>
      buffer_;  // writing: not yet in the file; reading: [read_at_, buffer_end_) not yet given
  size_t read_at_ = 0, buffer_end_ = 0;
  bool reading_ = false;
};

// Rows divided by bits of their tag (its upper half; 4 bits a level), for hash nodes that process
// their partitions one by one.
class SpillPartitions {
 public:
  static constexpr int kBitsALevel = 4;
  static constexpr size_t kPartitions = 1 << kBitsALevel;
  static constexpr int kLevelsMax = 8;

  SpillPartitions(const RowLayout* layout, std::string_view temp_directory, int level);
  // To be published, at level 0: partition i's file is PathOf(path, i).
  SpillPartitions(const RowLayout* layout, const std::string& path);
  static std::string PathOf(const std::string& path, size_t partition) {
    return path + "." + std::to_string(partition);
  }

  static size_t PartitionOf(uint64_t tag, int level) {
    return (tag >> (60 - kBitsALevel * level)) & (kPartitions - 1);
  }
  void Append(const char* row, uint64_t tag) { files_[PartitionOf(tag, level_)]->Append(row, tag); }
  // Rows of a batch: `layout` copies them first.
  void Append(std::span<const Column> columns, const uint32_t* rows, size_t count,
              const uint64_t* tags);

  int level() const { return level_; }
  uint64_t bytes() const;
  // Sealed; the partitions are used up.
  std::vector<std::unique_ptr<SpillFile>> TakeFiles();

 private:
  const RowLayout* layout_;
  int level_;
  std::vector<std::unique_ptr<SpillFile>> files_;
  Arena scratch_;
};

}  // namespace sluice
