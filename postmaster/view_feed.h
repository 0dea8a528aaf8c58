// One shard's changes: its publication and slot, the stream, and its transactions that wait for an
// epoch.
//
//   kIdle ──Want()──► kPreparing ──► kStreaming ◄──► kWaiting (lost; tried again with a backoff)
//     ▲                                  │
//     └────────── kDropping ◄── Unwant() ┘        (any state)
//
// One slot and one publication a server and Sluice instance, both named after the instance, made
// when the first view needs them and dropped with the last. The slot is only as good as what it
// says of itself: after each connect the server's identity and the slot's position are compared
// with what the store says (a slot that was made again, or that moved past our position, has lost
// changes), and if they do not fit, everything from that server is read again (`lost`).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "postmaster/remote_task.h"
#include "shm/live_views.h"
#include "stream/change_reader.h"

namespace sluice {

// What the store keeps of a feed.
struct FeedRecord {
  std::string system_identifier;  // empty: no slot was made yet
  Lsn applied_lsn = 0;
  std::string Text() const;
  static FeedRecord Parse(std::string_view text);
};

class ShardFeed {
 public:
  enum class State { kIdle, kPreparing, kStreaming, kWaiting, kDropping };
  // `connect`: for a connection by the given extra keyword ("" or "replication").
  using ConnectAs = std::function<const ConnectionSpec*(bool replication, Arena* arena)>;

  ShardFeed(Oid server, std::string server_name, std::string instance, FeedRecord record,
            ConnectAs connect);
  ~ShardFeed();

  // The store has a record by which the slot will be dropped, whatever happens: it may be made.
  void Announced() { announced_ = true; }
  bool announced() const { return announced_; }
  void Want() { wanted_ = true; }
  void Unwant() { wanted_ = false; }
  bool wanted() const { return wanted_; }
  bool idle() const { return state_ == State::kIdle; }

  // Of transactions that wait for an epoch; beyond it the shard is held back. What a single one has
  // more goes to `spilled`.
  void SetReadyBytesMax(size_t bytes, BlockSource* spilled) {
    ready_bytes_max_ = bytes;
    reader_.SetSpill(bytes, spilled);
  }
  // Goes on with whatever is there; never waits. Returns whether there may be more at once.
  bool Poll(int64_t now_us);
  // When Poll has something to do though nothing comes; 0: never.
  int64_t wake_at_us() const { return wake_at_us_; }

  State state() const { return state_; }
  ChangeReader& reader() { return reader_; }
  // Changes are missing: every copy from this server must be read again. Once told, reset.
  bool TakeLost() { return std::exchange(lost_, false); }
  // What was received again after a restart may be incomplete: it comes once more from its
  // beginning, and what was kept of it must be forgotten. Once told, reset.
  bool TakeReplayLost() { return std::exchange(replay_lost_, false); }
  // Until everything that was confirmed to be kept in memory only has come again: nothing may be
  // confirmed.
  bool replaying() const { return replaying_; }
  // The server does not let us (no permission, no slot free): jobs that need it fail.
  bool refused() const { return refused_; }
  // The last one, while it is not streaming.
  const std::optional<Error>& error() const { return error_; }

  Oid server() const { return server_; }
  const std::string& server_name() const { return server_name_; }
  const std::string& publication() const { return name_; }
  FeedRecord& record() { return record_; }
  uint64_t system_identifier() const;
  const ConnectAs& connect() const { return connect_; }
  // After an epoch: what is in the views, and what the shard may forget.
  void Applied(Lsn applied, int64_t commit_time_us);
  void Confirm(Lsn lsn);
  Lsn confirmed_lsn() const { return confirmed_; }
  uint64_t pin() const { return pin_; }

 private:
  void Run(std::vector<std::string> statements);
  void StartProbe();
  void OnProbed();
  void OnPrepared();
  void StartStream();
  void StartDrop();
  void Fail(const Error& error, int64_t now_us);

  const Oid server_;
  const std::string server_name_;
  const std::string instance_, name_;
  FeedRecord record_;
  const ConnectAs connect_;
  const uint64_t pin_;
  ReplicatedServer* const shared_;

  State state_ = State::kWaiting;  // there may be a slot, wanted or not
  bool wanted_ = false;
  bool announced_ = false;
  bool replaying_ = true;  // this process has not caught up with its predecessor yet
  bool replay_lost_ = false;
  bool refused_ = false;
  Lsn replay_until_ = 0;
  bool lost_ = false;
  bool probing_ = false;
  std::unique_ptr<RemoteTask> task_, stream_;
  std::vector<std::vector<RemoteRow>> rows_;
  ChangeReader reader_;
  size_t ready_bytes_max_ = size_t{1} << 20;
  Lsn confirmed_ = 0;
  std::optional<Error> error_;
  int64_t wake_at_us_ = 0;
  int64_t backoff_us_ = 0;
};

}  // namespace sluice
