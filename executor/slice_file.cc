#include "executor/slice_file.h"

#include <cerrno>
#include <unistd.h>

#include "executor/spill.h"

namespace sluice {

void SliceFile::Append(const Slice& slice) {
  if (!fd_.valid()) fd_ = OpenTemporaryFile(directory_);
  Record record{slice.size_bytes, slice.rows, slice.stream, slice.kind};
  // It lies in memory of its own no longer.
  if (record.kind == SliceKind::kOversized) record.kind = SliceKind::kDataRows;
  uint64_t start = write_at_;
  try {
    Write(&record, sizeof record);
    Write(slice.data, slice.size_bytes);
  } catch (...) {
    write_at_ = start;  // what came before stays good
    throw;
  }
  bytes_written_ += slice.size_bytes;
}

bool SliceFile::Take(Slice* slice) {
  if (empty()) return false;
  Record record;
  Read(&record, sizeof record);
  buffer_.resize(record.size_bytes);
  Read(buffer_.data(), buffer_.size());
  *slice = {record.kind, record.stream, kNoChunk, buffer_.data(), record.size_bytes, record.rows};
  if (empty()) {  // all was taken: the disk gets its room back
    write_at_ = read_at_ = 0;
    if (ftruncate(fd_.get(), 0) != 0) ThrowFileError("truncate", errno);
  }
  return true;
}

void SliceFile::Write(const void* data, size_t size_bytes) {
  auto* at = static_cast<const char*>(data);
  while (size_bytes > 0) {
    ssize_t n = pwrite(fd_.get(), at, size_bytes, static_cast<off_t>(write_at_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ThrowFileError("write to", n < 0 ? errno : ENOSPC);
    at += n;
    size_bytes -= static_cast<size_t>(n);
    write_at_ += static_cast<uint64_t>(n);
  }
}

void SliceFile::Read(void* data, size_t size_bytes) {
  auto* at = static_cast<char*>(data);
  while (size_bytes > 0) {
    ssize_t n = pread(fd_.get(), at, size_bytes, static_cast<off_t>(read_at_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ThrowFileError("read", n < 0 ? errno : EIO);
    at += n;
    size_bytes -= static_cast<size_t>(n);
    read_at_ += static_cast<uint64_t>(n);
  }
}

}  // namespace sluice
