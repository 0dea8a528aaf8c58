// Statements on a server while this process does other things: what comes is taken in by Poll().
// This process's latch is set when there is something.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postmaster/remote_query.h"
#include "shm/query_arena.h"
#include "shm/stream.h"

namespace sluice {

struct RemoteStatement {
  StreamKind kind = StreamKind::kQuery;
  std::string sql;
  std::vector<StreamParam> params;      // values must live until the task has ended
  std::vector<int16_t> result_formats;  // as in Bind
  uint32_t chunk_quota = 2;
};

class RemoteTask {
 public:
  using Connect = std::function<const ConnectionSpec*(Arena* arena)>;
  // Runs them one after the other on the connection of `pin`, or (pin 0) each on any connection.
  // An error in one does not keep those behind it from running. Throws what `connect` throws.
  RemoteTask(const Connect& connect, std::vector<RemoteStatement> statements, uint64_t pin = 0,
             int64_t silence_timeout_us = 0);
  ~RemoteTask();  // cancels what still runs

  // Whole DataRow or CopyData messages of the index-th statement.
  using Rows = std::function<void(size_t index, const char* data, size_t size_bytes)>;
  // Hands out up to `slices_max` slices that are there; never waits. Returns whether there may be
  // more at once.
  bool Poll(const Rows& rows, size_t slices_max = 64);
  // Poll into rows of text.
  void PollText(std::vector<std::vector<RemoteRow>>* rows);
  bool ended() const { return ended_; }
  // Of the first statement that failed; valid once ended().
  std::optional<Error> error() const;

  Stream& stream(size_t index) { return group_->streams[index]; }

 private:
  SharedBlocks blocks_;
  Arena arena_{blocks_, kExtentBytes};
  StreamGroup* group_;
  std::vector<RemoteStatement> statements_;
  std::optional<ChunkConsumer> consumer_;
  bool ended_ = false;
};

}  // namespace sluice
