// The connection to one client: whole messages in, a bounded buffer out. Every wait is a WaitLatch,
// so that cancel, termination and timeouts reach a backend whose client is slow.
#pragma once

#include <optional>
#include <poll.h>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "shm/latch.h"
#include "wire/message.h"
#include "wire/tls.h"

namespace sluice {

// The client has left: the session ends without a word.
struct ClientGone {};

class ClientSocket {
 public:
  explicit ClientSocket(UniqueFd fd);

  // A whole message, if one has come. Never sleeps. Throws ClientGone at the end of the stream,
  // 08P01 for bytes that are no message.
  std::optional<MessageReader::Message> TryTake(bool startup);
  // Whether a message, or a part of one, is here already.
  bool has_input() const { return !reader_.empty(); }
  // Without a look at the socket.
  bool may_have_input() const { return has_input() || tls_ != nullptr; }
  char next_type() const { return reader_.next_type(); }
  // Sleeps until the client sends something, the latch is set or the timeout has passed.
  Woken WaitForInput(int timeout_ms);

  // All that follows is encrypted, from a handshake on that may take until `deadline_us` of
  // CLOCK_MONOTONIC. 08P01 where the client has sent anything beyond its request already (it could
  // have been put there by somebody in between), or fails at the handshake.
  void StartTls(std::shared_ptr<TlsContext> context, int64_t deadline_us);
  const TlsChannel* tls() const { return tls_.get(); }

  // Messages are appended here, whole ones only.
  std::string* out() { return &out_; }
  size_t pending_bytes() const { return out_.size() - sent_; }
  // Sends all. Interruptible (CheckForInterrupts throws); what is left then is sent by the next
  // Flush. Not `cancelable`: only by termination, for when the statement's end is in the buffer
  // already.
  void Flush(bool cancelable = true);
  void FlushIfLarge() {
    if (pending_bytes() >= kLargeBytes) Flush();
  }
  // Sends whole messages that lie elsewhere, without a copy. After an interrupt the stream is at a
  // message's end again once the buffer is flushed.
  void SendMessages(std::string_view messages);
  // Gives what the kernel takes at once, and no more: a last word before the end.
  void FlushWithoutWaiting();

  // From now on (until called with -1) a client that takes nothing for `after_ms` is behind, if
  // other statements wait for what its own holds. Then what it does not take stays in the buffer:
  // Flush and SendMessages return.
  void LetFallBehind(int after_ms) {
    behind_after_ms_ = after_ms;
    behind_ = false;
  }
  bool behind() const { return behind_; }
  pollfd OutputPoll() const;  // ready as soon as the client takes something again, or is gone

  bool PeerIsGone() const;
  int fd() const { return fd_.get(); }

  static constexpr size_t kLargeBytes = 64 * 1024;

 private:
  ssize_t Receive(char* to, size_t room);
  // False: the client is behind, and should not be waited for.
  bool WaitForOutput(bool cancelable);
  size_t Send(std::string_view more);
  size_t SendPlain(std::string_view more);
  size_t SendTls(std::string_view more);
  void DropSent(size_t bytes);
  // What counts as not sent yet: of the buffer, and of the record that TLS has begun.
  size_t unsent_bytes() const { return pending_bytes() + record_.size(); }

  UniqueFd fd_;
  std::unique_ptr<TlsChannel> tls_;
  // The bytes of the TLS record being sent: a write that was begun must be repeated with the same.
  std::string record_;
  TlsChannel::Outcome tls_wants_ = TlsChannel::Outcome::kWantWrite;
  MessageReader reader_;
  std::string out_;
  size_t sent_ = 0;
  bool mid_message_ = false;  // what left last may have ended inside a message
  int behind_after_ms_ = -1;
  bool behind_ = false;
  bool broken_ = false;  // cut off inside a message: nothing can follow
};

}  // namespace sluice
