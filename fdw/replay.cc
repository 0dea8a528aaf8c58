#include "fdw/replay.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fdw/remote_message.h"

namespace sluice {
namespace {

constexpr int64_t kTickUs = 1'000;

}  // namespace

ReplayStream::ReplayStream(Worker* worker, Group* group, Stream* stream)
    : StreamTask(worker, group, stream),
      writer_(stream, SliceKind::kDataRows),
      timer_(
          &worker->timers, [](void* self) { static_cast<ReplayStream*>(self)->Produce(); }, this) {}

std::string ReplayStream::Option(std::string_view keyword) const {
  const ConnectionSpec& spec = *stream()->connection;
  for (size_t i = 0; i < spec.keywords.size(); i++) {
    if (spec.keywords[i] == keyword) return std::string(spec.values[i]);
  }
  return {};
}

// Files are read once and kept: a benchmark opens them again and again.
std::shared_ptr<const ReplayStream::Rows> ReplayStream::Load(const std::string& file,
                                                             Error* error) {
  static std::unordered_map<std::string, std::shared_ptr<const Rows>> loaded;
  auto& cached = loaded[file];
  if (cached != nullptr) return cached;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    *error = MakeError(sqlstate::kIoError, "could not open file \"{}\"", file);
    return nullptr;
  }
  auto rows = std::make_shared<Rows>();
  std::stringstream text;
  text << in.rdbuf();
  rows->bytes = text.str();
  rows->offsets.push_back(0);
  for (size_t at = 0; at < rows->bytes.size();) {
    uint32_t one = 0;
    MessageHeader header{};
    HeaderState state = ReadHeader(rows->bytes.data() + at, rows->bytes.size() - at, &header);
    if (state == HeaderState::kValid && header.total_bytes <= rows->bytes.size() - at) {
      WalkMessages(rows->bytes.data() + at, header.total_bytes, 'D', &one);
    }
    if (one != 1) {
      *error =
          MakeError(sqlstate::kDataCorrupted, "file \"{}\" has no DataRow at byte {}", file, at);
      return nullptr;
    }
    at += header.total_bytes;
    rows->offsets.push_back(at);
  }
  cached = rows;
  return rows;
}

void ReplayStream::Start() {
  stream()->state.store(StreamState::kRunning, std::memory_order_relaxed);
  Error error;
  rows_ = Load(Option("file"), &error);
  if (rows_ == nullptr) return Fail(error);
  total_ = std::strtoull(Option("total_rows").c_str(), nullptr, 10);
  if (rows_->count() == 0) total_ = 0;
  rows_per_us_ = std::strtod(Option("rows_per_second").c_str(), nullptr) / 1e6;
  start_us_ = worker_->now_us;
  Produce();
}

uint64_t ReplayStream::DueRows() const {
  if (rows_per_us_ <= 0) return total_ - produced_;
  auto due = static_cast<uint64_t>(static_cast<double>(worker_->now_us - start_us_) * rows_per_us_);
  due = std::min(due, total_);
  return due > produced_ ? due - produced_ : 0;
}

void ReplayStream::Produce() {
  if (ended()) return;
  uint64_t due = DueRows();
  while (due > 0) {
    if (!writer_.Ready()) return WaitForLatch();
    // As many whole rows as fit, up to the end of the file.
    const std::vector<size_t>& offsets = rows_->offsets;
    size_t from = offsets[next_];
    auto last = std::upper_bound(offsets.begin() + static_cast<ptrdiff_t>(next_), offsets.end(),
                                 from + writer_.room_bytes()) -
                1;
    auto fit = static_cast<uint64_t>(last - offsets.begin()) - next_;
    uint64_t count = std::min(fit, due);
    if (count == 0) {
      if (offsets[next_ + 1] - from > writer_.chunk_bytes()) {
        return Fail(
            MakeError(sqlstate::kProgramLimitExceeded, "a replayed row must fit into a chunk"));
      }
      writer_.Leave();
      continue;
    }
    size_t bytes = offsets[next_ + count] - from;
    std::memcpy(writer_.room(), rows_->bytes.data() + from, bytes);
    writer_.Received(bytes);
    writer_.AddRows(bytes, static_cast<uint32_t>(count));
    next_ = (next_ + count) % rows_->count();
    produced_ += count;
    due -= count;
  }
  if (produced_ == total_) {
    writer_.Finish();
    return End(StreamState::kEnded);
  }
  writer_.PublishIfAwaited();
  timer_.Arm(worker_->now_us + kTickUs);
}

void ReplayStream::Detach() {
  if (ended()) return;
  timer_.Disarm();
  writer_.Abandon();
  End(StreamState::kCancelled);
}

void ReplayStream::Fail(const Error& error) {
  writer_.Abandon();
  End(StreamState::kFailed, &error);
}

}  // namespace sluice
