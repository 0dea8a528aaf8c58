#include "postmaster/decision_log.h"

#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sys/stat.h>

namespace sluice {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kMagic = 0x51dec1de;
constexpr size_t kUnitBytes = 128;
constexpr uint64_t kUnitsPerSegment = 8192;
constexpr size_t kSegmentBytes = kUnitBytes * kUnitsPerSegment;
constexpr std::string_view kPrefix = "decisions.";

enum class RecordKind : uint32_t { kDecided, kDone, kByCatalog };

struct RecordHeader {
  uint32_t magic;
  uint32_t checksum;  // of all behind it
  uint64_t number;
  int64_t decided_at;
  RecordKind kind;
  uint32_t servers;  // their oids follow
};
static_assert(sizeof(RecordHeader) == 32);

constexpr size_t kServersMax = (kSegmentBytes - sizeof(RecordHeader)) / sizeof(uint32_t);

size_t UnitsOf(size_t servers) {
  size_t bytes = sizeof(RecordHeader) + servers * sizeof(uint32_t);
  return (bytes + kUnitBytes - 1) / kUnitBytes;
}

uint32_t ChecksumOf(std::string_view record) {
  boost::crc_32_type crc;
  constexpr size_t kFrom = offsetof(RecordHeader, number);
  crc.process_bytes(record.data() + kFrom, record.size() - kFrom);
  return crc.checksum();
}

Error FileError(const std::string& path, const char* what, int error) {
  bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return MakeError(full ? sqlstate::kDiskFull : sqlstate::kIoError, "could not {} file \"{}\": {}",
                   what, path, std::strerror(error));
}

bool SyncDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.valid() && fsync(fd.get()) == 0;
}

// The record at `at` of a segment, or false.
bool ReadRecord(std::string_view segment, size_t at, Decision* decision, bool* done) {
  RecordHeader header;
  if (segment.size() - at < sizeof header) return false;
  std::memcpy(&header, segment.data() + at, sizeof header);
  if (header.magic != kMagic || header.servers > kServersMax) return false;
  size_t bytes = sizeof header + header.servers * sizeof(uint32_t);
  if (segment.size() - at < bytes) return false;
  if (ChecksumOf(segment.substr(at, bytes)) != header.checksum) return false;
  decision->number = header.number;
  decision->decided_at = header.decided_at;
  decision->servers.resize(header.servers);
  if (header.servers > 0)
    std::memcpy(decision->servers.data(), segment.data() + at + sizeof header,
                header.servers * sizeof(uint32_t));
  *done = header.kind == RecordKind::kDone;
  decision->by_catalog = header.kind == RecordKind::kByCatalog;
  return true;
}

struct SegmentContent {
  std::vector<Decision> decided;
  std::vector<TransactionNumber> done;
};

SegmentContent ReadSegment(const std::string& path) {
  SegmentContent content;
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (size_t at = 0; at < bytes.size();) {
    Decision decision;
    bool done = false;
    if (!ReadRecord(bytes, at, &decision, &done)) {
      at += kUnitBytes;
      continue;
    }
    at += UnitsOf(decision.servers.size()) * kUnitBytes;
    if (done)
      content.done.push_back(decision.number);
    else
      content.decided.push_back(std::move(decision));
  }
  return content;
}

// "<node id> <epoch>", replaced as a whole.
Status WriteNodeFile(const std::string& path, const std::string& text) {
  std::string next = path + ".new";
  UniqueFd fd(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return FileError(next, "create", errno);
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FileError(next, "write", errno);
  if (fsync(fd.get()) != 0) return FileError(next, "fsync", errno);
  if (rename(next.c_str(), path.c_str()) != 0) return FileError(path, "rename", errno);
  if (!SyncDirectory(fs::path(path).parent_path())) return FileError(path, "fsync", errno);
  return Ok{};
}

}  // namespace

Status DecisionLog::Start() {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) return FileError(directory_, "create", error.value());
  fs::permissions(directory_, fs::perms::owner_all, error);
  std::string path = directory_ + "/node", node;
  uint32_t epoch = 0;
  if (std::ifstream file(path); file) {
    if (!(file >> node >> epoch) || node.size() != 16)
      return MakeError(sqlstate::kDataCorrupted, "file \"{}\" is damaged", path);
  } else {
    // Not made anew where there are decisions: what they decide carries the old one.
    if (!Segments().empty())
      return MakeError(sqlstate::kDataCorrupted, "file \"{}\" is missing", path);
    std::random_device random;
    node = fmt::format("{:08x}{:08x}", random(), random());
  }
  epoch++;
  Status written = WriteNodeFile(path, fmt::format("{} {}\n", node, epoch));
  if (!written.ok()) return written;
  TransactionTable& table = *transaction_table;
  std::memcpy(table.node, node.c_str(), node.size() + 1);
  table.epoch = epoch;
  table.next.store(1, std::memory_order_relaxed);
  std::set<uint32_t> recovering;
  for (const Decision& decision : Unfinished())
    recovering.insert(decision.servers.begin(), decision.servers.end());
  SetRecovering({recovering.begin(), recovering.end()});
  std::vector<uint64_t> segments = Segments();
  uint64_t next = segments.empty() ? 0 : segments.back() + 1;
  table.log_units.store(next * kUnitsPerSegment, std::memory_order_relaxed);
  return Ok{};
}

Status DecisionLog::Append(const Decision& decision) {
  return Write(decision, false, true);
}

Status DecisionLog::MarkDone(TransactionNumber number) {
  Decision decision;
  decision.number = number;
  return Write(decision, true, false);
}

Status DecisionLog::Write(const Decision& decision, bool done, bool sync) {
  size_t units = UnitsOf(decision.servers.size());
  std::string record(units * kUnitBytes, '\0');
  RecordKind kind = done                  ? RecordKind::kDone
                    : decision.by_catalog ? RecordKind::kByCatalog
                                          : RecordKind::kDecided;
  RecordHeader header{kMagic,
                      0,
                      decision.number,
                      decision.decided_at,
                      kind,
                      static_cast<uint32_t>(decision.servers.size())};
  size_t bytes = sizeof header + decision.servers.size() * sizeof(uint32_t);
  if (!decision.servers.empty())
    std::memcpy(record.data() + sizeof header, decision.servers.data(), bytes - sizeof header);
  std::memcpy(record.data(), &header, sizeof header);
  header.checksum = ChecksumOf(std::string_view(record).substr(0, bytes));
  std::memcpy(record.data(), &header, sizeof header);

  uint64_t at = 0;
  do {  // a record lies in one file; the rest of a file that is too small for it stays unused
    at = transaction_table->log_units.fetch_add(units, std::memory_order_relaxed);  // T3
  } while (at / kUnitsPerSegment != (at + units - 1) / kUnitsPerSegment);
  uint64_t segment = at / kUnitsPerSegment;
  Status opened = OpenSegment(segment);
  if (!opened.ok()) return opened;
  auto offset = static_cast<off_t>(at % kUnitsPerSegment * kUnitBytes);
  ssize_t written = pwrite(fd_.get(), record.data(), record.size(), offset);
  if (written != static_cast<ssize_t>(record.size()))
    return FileError(PathOf(segment), "write", written < 0 ? errno : ENOSPC);
  if (!sync || fdatasync(fd_.get()) == 0) return Ok{};
  // Whether it is on disk is not known. It must not count after a restart, since the caller rolls
  // back; a second failure here leaves no way on but the crash rule's.
  Error failed = FileError(PathOf(segment), "fsync", errno);
  std::string nothing(record.size(), '\0');
  if (pwrite(fd_.get(), nothing.data(), nothing.size(), offset) !=
          static_cast<ssize_t>(nothing.size()) ||
      fdatasync(fd_.get()) != 0)
    abort();
  return failed;
}

// Allocated whole before its first record, so that a full disk shows before anything is decided.
Status DecisionLog::OpenSegment(uint64_t segment) {
  if (segment == open_segment_) return Ok{};
  open_segment_ = ~uint64_t{0};
  std::string path = PathOf(segment);
  fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd_.valid()) return FileError(path, "open", errno);
  struct stat status {};
  if (fstat(fd_.get(), &status) != 0) return FileError(path, "stat", errno);
  if (S_ISREG(status.st_mode) && status.st_size < static_cast<off_t>(kSegmentBytes)) {
    int error = posix_fallocate(fd_.get(), 0, kSegmentBytes);
    if (error != 0) return FileError(path, "allocate", error);
  }
  if (!SyncDirectory(directory_)) return FileError(directory_, "fsync", errno);
  open_segment_ = segment;
  return Ok{};
}

std::string DecisionLog::PathOf(uint64_t segment) const {
  return fmt::format("{}/{}{:010}", directory_, kPrefix, segment);
}

std::vector<uint64_t> DecisionLog::Segments() const {
  std::vector<uint64_t> segments;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix))
      segments.push_back(std::strtoull(name.c_str() + kPrefix.size(), nullptr, 10));
  }
  std::sort(segments.begin(), segments.end());
  return segments;
}

std::vector<Decision> DecisionLog::Unfinished() const {
  std::map<TransactionNumber, Decision> unfinished;
  std::set<TransactionNumber> done;
  for (uint64_t segment : Segments()) {
    SegmentContent content = ReadSegment(PathOf(segment));
    for (Decision& decision : content.decided) {
      bool known = unfinished.contains(decision.number);
      if (!known || !decision.by_catalog) unfinished[decision.number] = std::move(decision);
    }
    done.insert(content.done.begin(), content.done.end());
  }
  std::vector<Decision> decisions;
  for (auto& [number, decision] : unfinished)
    if (!done.contains(number)) decisions.push_back(std::move(decision));
  return decisions;
}

void DecisionLog::RemoveFinished() {
  uint64_t current =
      transaction_table->log_units.load(std::memory_order_relaxed) / kUnitsPerSegment;
  std::set<TransactionNumber> unfinished;
  for (const Decision& decision : Unfinished()) unfinished.insert(decision.number);
  // From the oldest on: the marks in a file are of decisions in the same or an older one. One
  // segment is kept behind the current, for writers that have taken their place in it just now.
  for (uint64_t segment : Segments()) {
    if (segment + 1 >= current) return;
    for (const Decision& decision : ReadSegment(PathOf(segment)).decided)
      if (unfinished.contains(decision.number)) return;
    unlink(PathOf(segment).c_str());
  }
}

}  // namespace sluice
