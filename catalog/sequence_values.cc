#include "catalog/sequence_values.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/error.h"

namespace sluice {

namespace {

constexpr int64_t kAheadMin = 32, kAheadMax = int64_t{1} << 20;
// Reservations that follow each other faster than this are made larger.
constexpr int64_t kBusyUs = 100'000;
constexpr uint64_t kMagic = 0x31716573'65636975;

int64_t NowUs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// Another one after each start of the machine.
const std::string& BootId() {
  static const std::string id = [] {
    char text[40] = {};
    UniqueFd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    ssize_t size = fd.valid() ? read(fd.get(), text, 36) : 0;
    return std::string(text, size < 0 ? 0 : static_cast<size_t>(size));
  }();
  return id;
}

[[noreturn]] void ThrowIo(const char* what, const std::string& path) {
  int code = errno;
  SqlState state = code == ENOSPC || code == EDQUOT ? sqlstate::kDiskFull : sqlstate::kIoError;
  Throw(state, "could not {} file \"{}\": {}", what, path, std::strerror(code));
}

// `from` + `steps` × `increment` within the sequence's bounds.
int64_t Advanced(const Sequence& s, int64_t from, int64_t steps) {
  __int128 to = static_cast<__int128>(from) + static_cast<__int128>(steps) * s.increment;
  if (to > s.max) return s.max;
  if (to < s.min) return s.min;
  return static_cast<int64_t>(to);
}

bool IsBeyond(const Sequence& s, int64_t a, int64_t b) {
  return s.increment > 0 ? a > b : a < b;
}

}  // namespace

struct SequenceValues::Record {
  uint64_t magic = kMagic;
  int64_t last = 0;
  int64_t reserved = 0;  // durable; `last` may go up to it
  int64_t ahead = kAheadMin;
  int64_t reserved_at_us = 0;
  uint32_t is_called = 0;
  uint32_t checksum = 0;
  char boot_id[40] = {};

  uint32_t Checksum() const {
    Record copy = *this;
    copy.checksum = 0;
    uint32_t hash = 2166136261;  // FNV-1a
    const auto* bytes = reinterpret_cast<const unsigned char*>(&copy);
    for (size_t i = 0; i < sizeof copy; i++) hash = (hash ^ bytes[i]) * 16777619;
    return hash;
  }
};

// The record of a sequence, locked against all other processes.
class SequenceValues::Locked {
 public:
  Locked(SequenceValues* values, const Sequence& sequence);
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  Record record;
  // Durable writes also make the new file itself so.
  void Write(bool durable);

 private:
  // Let go also where the record is found damaged.
  class FileLock {
   public:
    FileLock(int fd, const std::string& path);
    ~FileLock() { Set(F_UNLCK); }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

   private:
    bool Set(int16_t type) const;
    const int fd_;
  };

  std::string directory_, path_;
  int fd_;
  std::optional<FileLock> lock_;
  bool is_new_ = false;
};

bool SequenceValues::Locked::FileLock::Set(int16_t type) const {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  while (fcntl(fd_, F_OFD_SETLKW, &lock) != 0)
    if (errno != EINTR) return false;
  return true;
}

SequenceValues::Locked::FileLock::FileLock(int fd, const std::string& path) : fd_(fd) {
  if (!Set(F_WRLCK)) ThrowIo("lock", path);
}

SequenceValues::Locked::Locked(SequenceValues* values, const Sequence& sequence)
    : directory_(values->directory_), path_(directory_ + "/" + std::to_string(sequence.storage)) {
  UniqueFd& file = values->files_[sequence.storage];
  if (!file.valid()) {
    if (mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) ThrowIo("create", directory_);
    file.Reset(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.valid()) ThrowIo("open", path_);
  }
  fd_ = file.get();
  lock_.emplace(fd_, path_);
  ssize_t size = pread(fd_, &record, sizeof record, 0);
  if (size < 0) ThrowIo("read", path_);
  if (size == 0) {
    is_new_ = true;
    record = {};
    record.last = record.reserved = sequence.restart;
  } else if (size != sizeof record || record.magic != kMagic ||
             record.checksum != record.Checksum()) {
    Throw(sqlstate::kDataCorrupted, "file \"{}\" of sequence \"{}\" is damaged", path_,
          sequence.name);
  } else if (record.boot_id != BootId()) {
    // What was written without waiting may be lost: go on where it cannot have come.
    if (record.is_called != 0 || IsBeyond(sequence, record.reserved, record.last)) {
      record.last = record.reserved;
      record.is_called = 1;
    }
  }
}

void SequenceValues::Locked::Write(bool durable) {
  std::memset(record.boot_id, 0, sizeof record.boot_id);
  std::memcpy(record.boot_id, BootId().data(),
              std::min(BootId().size(), sizeof record.boot_id - 1));
  record.checksum = record.Checksum();
  if (pwrite(fd_, &record, sizeof record, 0) != sizeof record) ThrowIo("write", path_);
  if (!durable && !is_new_) return;
  if (fdatasync(fd_) != 0) ThrowIo("fsync", path_);
  if (!is_new_) return;
  UniqueFd directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || fsync(directory.get()) != 0) ThrowIo("fsync", directory_);
}

SequenceValues::Range SequenceValues::Next(const Sequence& sequence, int64_t count) {
  Locked file(this, sequence);
  Record& record = file.record;
  const Sequence& s = sequence;
  int64_t first = record.last;
  bool wrapped = false;
  if (record.is_called != 0) {
    __int128 next = static_cast<__int128>(record.last) + s.increment;
    bool ends = next > s.max || next < s.min;
    if (ends && !s.cycle)
      Throw(MakeSqlState("2200H"), "nextval: reached {} value of sequence \"{}\" ({})",
            s.increment > 0 ? "maximum" : "minimum", s.name, s.increment > 0 ? s.max : s.min);
    wrapped = ends;
    first = ends ? (s.increment > 0 ? s.min : s.max) : static_cast<int64_t>(next);
  }
  __int128 room =
      s.increment > 0 ? static_cast<__int128>(s.max) - first : static_cast<__int128>(first) - s.min;
  __int128 step = s.increment > 0 ? s.increment : -static_cast<__int128>(s.increment);
  Range range{first, static_cast<int64_t>(std::min<__int128>(count, room / step + 1))};
  record.last = Advanced(s, first, range.count - 1);
  record.is_called = 1;
  bool durable = wrapped || IsBeyond(s, record.last, record.reserved) || record.reserved_at_us == 0;
  if (durable) {
    int64_t now_us = NowUs();
    bool busy = now_us - record.reserved_at_us < kBusyUs;
    record.ahead = busy ? std::min(kAheadMax, record.ahead * 2) : kAheadMin;
    record.reserved = Advanced(s, record.last, record.ahead);
    record.reserved_at_us = now_us;
  }
  file.Write(durable);
  return range;
}

void SequenceValues::Set(const Sequence& sequence, State state) {
  Locked file(this, sequence);
  file.record.last = file.record.reserved = state.last;
  file.record.is_called = state.is_called;
  file.record.ahead = kAheadMin;
  file.record.reserved_at_us = 0;
  file.Write(true);
}

SequenceValues::State SequenceValues::Get(const Sequence& sequence) {
  Locked file(this, sequence);
  return {file.record.last, file.record.is_called != 0};
}

}  // namespace sluice
