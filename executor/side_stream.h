// One remote statement apart from a plan's streams: what CompletionPlan runs, one after the other,
// on a connection that it keeps; what ModifyPlan writes.
#pragma once

#include <optional>
#include <string_view>

#include "common/arena.h"
#include "executor/executor.h"
#include "shm/stream.h"

namespace sluice {

class SideStream {
 public:
  struct Options {
    StreamKind kind;
    const ConnectionSpec* connection;
    std::string_view sql;
    StreamTransaction transaction = {};
    std::span<const StreamParam> params = {};
    std::span<const int16_t> result_formats = {};
    bool prepare = false;  // worth a named statement
    int64_t admission_timeout_us = 0;
  };
  // Opens it. `arena` is the query's, in shared memory.
  SideStream(const Options& options, Arena* arena);
  ~SideStream() { CloseStreams(group_); }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // The next slice of rows; false at a good end. Throws the error of a bad one.
  bool Next(Slice* slice, WaitEvent event);
  // To the end, without rows.
  void Finish(WaitEvent event);

  // kCopyIn: hands over bytes of COPY data; waits while the shard does not take them.
  void Put(std::string_view bytes);
  void EndInput();

  const Stream& stream() const { return *stream_; }

 private:
  void AwaitRoom();

  StreamGroup* group_;
  Stream* stream_;
  std::optional<ChunkConsumer> consumer_;
  Stream* feed_ = nullptr;  // kCopyIn: accounts for the chunks handed over
  bool admitted_ = false;
};

}  // namespace sluice
