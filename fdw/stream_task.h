// One running stream, whatever its protocol. This is the whole interface that a foreign-data
// wrapper with a socket implements: start, go on when there is room again, let go.
#pragma once

#include "common/error.h"
#include "fdw/worker.h"
#include "shm/stream.h"

namespace sluice {

class Group;

class StreamTask {
 public:
  StreamTask(Worker* worker, Group* group, Stream* stream)
      : worker_(worker), group_(group), stream_(stream) {}
  StreamTask(const StreamTask&) = delete;
  virtual ~StreamTask();

  // The group is admitted: chunks and connections are there.
  virtual void Start() = 0;
  // Called after WaitForLatch(), when the latch was set.
  virtual void Resume() = 0;
  // Ends it early: lets go of the stream as soon as nothing writes into its chunks any more, then
  // calls End(kCancelled). Nothing if it has ended.
  virtual void Detach() = 0;

  Stream* stream() const { return stream_; }
  Group* group() const { return group_; }
  bool ended() const { return ended_; }
  // What its group holds the gate for is over on its server: the snapshot is taken.
  void PassGate();
  // Its group validates snapshots: its own is good and the statement can go; or it is to be taken
  // anew.
  virtual void Proceed() { PassGate(); }
  virtual void RetakeSnapshot() {}
  // The snapshots of its group were not taken in time: ends it, if its own is not.
  void OnGateTimeout(const Error& error) {
    if (!gate_passed_ && !ended_) GiveUp(error);
  }

 protected:
  // The one report of how the stream ended. REQUIRES: no chunk of it is held. After it the stream
  // is never touched again.
  void End(StreamState state, const Error* error = nullptr);
  void WaitForLatch();
  virtual void GiveUp(const Error&) {}
  // The stream's lease is somebody else's care from now on.
  Lease* TakeLease() {
    lease_taken_ = true;
    return stream_->lease;
  }

  Worker* const worker_;

 private:
  Group* const group_;
  Stream* const stream_;
  bool ended_ = false;
  bool gate_passed_ = false;
  bool lease_taken_ = false;
};

}  // namespace sluice
