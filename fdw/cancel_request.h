// A CancelRequest to a shard, on a socket of its own. libpq 15 has only a blocking one.
//
// It has worked (or come too late) when the shard closes the socket: the signal has been sent by
// then, so whatever the connection is given next cannot be hit by it.
#pragma once

#include <functional>
#include <string>
#include <sys/socket.h>

#include "common/fd.h"
#include "fdw/io_ring.h"

namespace sluice {

class CancelRequest {
 public:
  // `address` as getpeername gives it. `done` is called once, from a completion; it must not
  // destroy this.
  CancelRequest(IoRing* ring, const sockaddr_storage& address, socklen_t address_bytes,
                uint32_t pid, uint32_t key, std::function<void()> done);
  ~CancelRequest();  // REQUIRES: !busy()
  // False: there is no socket to be had; `done` is not called.
  bool Start();
  void Abort();  // ends it soon
  bool busy() const { return operation_.in_flight; }
  bool finished() const { return finished_; }
  // The socket broke after the request may have left: it can still strike whatever runs next.
  bool lost() const { return lost_; }

 private:
  enum class Stage : uint8_t { kConnect, kSend, kWaitForEnd };
  void OnDone(int result);
  void Finish() {
    finished_ = true;
    fd_.Reset();
    done_();
  }

  IoRing* const ring_;
  const sockaddr_storage address_;
  const socklen_t address_bytes_;
  const std::function<void()> done_;
  char packet_[16];
  size_t sent_ = 0;
  char answer_[16];
  UniqueFd fd_;
  Stage stage_ = Stage::kConnect;
  bool finished_ = false;
  bool lost_ = false;
  IoOperation operation_;
};

}  // namespace sluice
