#include "executor/spill.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "common/error.h"

namespace sluice {
namespace {

constexpr size_t kWriteBytes = 64 * 1024;
constexpr size_t kReadBytes = 256 * 1024;

}  // namespace

[[noreturn]] void ThrowFileError(const char* what, int error) {
  SqlState state = error == ENOSPC || error == EDQUOT ? sqlstate::kDiskFull : sqlstate::kIoError;
  Throw(state, "could not {} temporary file: {}", what, std::strerror(error));
}

UniqueFd OpenTemporaryFile(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) ThrowFileError("create", errno);
  std::string path = directory + "/spill_XXXXXX";
  fd.Reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) ThrowFileError("create", errno);
  ::unlink(path.c_str());
  return fd;
}

namespace {

UniqueFd CreateNamed(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) ThrowFileError("create", errno);
  return fd;
}

}  // namespace

SpillFile::SpillFile(const RowLayout* layout, std::string_view temp_directory)
    : layout_(layout), directory_or_path_(temp_directory) {}

SpillFile::SpillFile(const RowLayout* layout, std::string path, bool published)
    : layout_(layout), directory_or_path_(std::move(path)), published_(published) {}

std::unique_ptr<SpillFile> SpillFile::OpenPublished(const RowLayout* layout,
                                                    const std::string& path, uint64_t row_count) {
  auto file = std::make_unique<SpillFile>(layout, path, true);
  file->fd_.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file->fd_.valid()) ThrowFileError("open", errno);
  ::unlink(path.c_str());
  file->row_count_ = row_count;
  file->reading_ = true;  // never appended to here
  return file;
}

void SpillFile::Append(const char* row, uint64_t tag) {
  SLUICE_ASSERT(!reading_);
  Record record{tag, layout_->RowBytes(row)};
  if (buffer_.size() + sizeof record + record.row_bytes > kWriteBytes) Flush();
  if (buffer_.capacity() == 0) buffer_.reserve(kWriteBytes);
  const char* head = reinterpret_cast<const char*>(&record);
  buffer_.insert(buffer_.end(), head, head + sizeof record);
  buffer_.insert(buffer_.end(), row, row + record.row_bytes);
  row_count_++;
  bytes_ += sizeof record + record.row_bytes;
}

void SpillFile::Flush() {
  if (buffer_.empty()) return;
  if (!fd_.valid())
    fd_ = published_ ? CreateNamed(directory_or_path_) : OpenTemporaryFile(directory_or_path_);
  size_t written = 0;
  while (written < buffer_.size()) {
    ssize_t n = ::pwrite(fd_.get(), buffer_.data() + written, buffer_.size() - written,
                         static_cast<off_t>(file_at_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ThrowFileError("write to", n < 0 ? errno : ENOSPC);
    written += static_cast<size_t>(n);
    file_at_ += static_cast<uint64_t>(n);
  }
  buffer_.clear();
}

void SpillFile::Seal() {
  if (reading_ || !fd_.valid()) return;
  Flush();
  std::vector<char>().swap(buffer_);
}

void SpillFile::Publish() {
  SLUICE_ASSERT(published_);
  Flush();
  std::vector<char>().swap(buffer_);
  fd_.Reset();
}

void SpillFile::StartReading() {
  Seal();
  // A small file never left the buffer: it is read from there.
  bool in_memory = !fd_.valid();
  reading_ = true;
  rows_read_ = 0;
  read_at_ = 0;
  file_at_ = 0;
  buffer_end_ = in_memory ? buffer_.size() : 0;
}

bool SpillFile::Fill(size_t bytes_min) {
  if (buffer_end_ - read_at_ >= bytes_min) return true;
  if (!fd_.valid()) return false;
  std::memmove(buffer_.data(), buffer_.data() + read_at_, buffer_end_ - read_at_);
  buffer_end_ -= read_at_;
  read_at_ = 0;
  size_t wanted = std::max(kReadBytes, bytes_min);
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  while (buffer_end_ < bytes_min) {
    ssize_t n = ::pread(fd_.get(), buffer_.data() + buffer_end_, buffer_.size() - buffer_end_,
                        static_cast<off_t>(file_at_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ThrowFileError("read from", errno);
    if (n == 0) return false;
    buffer_end_ += static_cast<size_t>(n);
    file_at_ += static_cast<uint64_t>(n);
  }
  return true;
}

size_t SpillFile::Read(size_t rows_max, char** rows, uint64_t* tags) {
  SLUICE_ASSERT(reading_);
  size_t count = 0;
  while (count < rows_max && rows_read_ < row_count_) {
    // Refilling moves the buffer, so rows already given out end the call; the first one may refill.
    size_t have = buffer_end_ - read_at_;
    Record record;
    if (count > 0 && have < sizeof record) break;
    if (!Fill(sizeof record)) ThrowFileError("read from", EIO);
    std::memcpy(&record, buffer_.data() + read_at_, sizeof record);
    size_t bytes = sizeof record + record.row_bytes;
    if (count > 0 && buffer_end_ - read_at_ < bytes) break;
    if (!Fill(bytes)) ThrowFileError("read from", EIO);
    rows[count] = buffer_.data() + read_at_ + sizeof record;
    tags[count] = record.tag;
    layout_->Relocate(rows[count]);
    count++;
    rows_read_++;
    read_at_ += bytes;
  }
  return count;
}

SpillPartitions::SpillPartitions(const RowLayout* layout, std::string_view temp_directory,
                                 int level)
    : layout_(layout), level_(level) {
  for (size_t i = 0; i < kPartitions; i++) {
    files_.push_back(std::make_unique<SpillFile>(layout, temp_directory));
  }
}

SpillPartitions::SpillPartitions(const RowLayout* layout, const std::string& path)
    : layout_(layout), level_(0) {
  for (size_t i = 0; i < kPartitions; i++) {
    files_.push_back(std::make_unique<SpillFile>(layout, PathOf(path, i), true));
  }
}

void SpillPartitions::Append(std::span<const Column> columns, const uint32_t* rows, size_t count,
                             const uint64_t* tags) {
  char* stored[kBatchRows];
  layout_->Store(columns, rows, count, &scratch_, stored);
  for (size_t i = 0; i < count; i++) Append(stored[i], tags[rows == nullptr ? i : rows[i]]);
  scratch_.Reset();
}

std::vector<std::unique_ptr<SpillFile>> SpillPartitions::TakeFiles() {
  for (auto& file : files_) file->Seal();
  return std::move(files_);
}

uint64_t SpillPartitions::bytes() const {
  uint64_t bytes = 0;
  for (const auto& file : files_) {
    if (file != nullptr) bytes += file->bytes();
  }
  return bytes;
}

}  // namespace sluice
