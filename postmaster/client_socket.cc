#include "postmaster/client_socket.h"

#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>

#include "postmaster/child_process.h"
#include "shm/process_table.h"
#include "shm/stream.h"

namespace sluice {
namespace {

// A message beyond this is not copied when an interrupt comes while it leaves: it is sent to its
// end.
constexpr size_t kCopyMax = 1 << 20;

constexpr size_t kTlsRecordBytes = 16 * 1024;

// How many bytes from the start of `messages` to the end of the message that byte `at` lies in
// (`at` itself, if a message begins there).
size_t MessageEnd(std::string_view messages, size_t at) {
  size_t end = 0;
  while (end < at && messages.size() - end >= 5)
    end += 1 + static_cast<size_t>(LoadBig<uint32_t>(messages.data() + end + 1));
  return std::min(std::max(end, at), messages.size());
}

}  // namespace

ClientSocket::ClientSocket(UniqueFd fd) : fd_(std::move(fd)) {
  SetQuitClient(fd_.get());
}

std::optional<MessageReader::Message> ClientSocket::TryTake(bool startup) {
  for (;;) {
    if (auto message = reader_.Take(startup)) return message;
    size_t room;
    char* to = reader_.Buffer(&room);
    ssize_t got = Receive(to, room);
    if (got > 0) {
      reader_.Commit(static_cast<size_t>(got));
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got < 0 && errno == EINTR) continue;
    throw ClientGone{};
  }
}

ssize_t ClientSocket::Receive(char* to, size_t room) {
  if (tls_ == nullptr) return recv(fd_.get(), to, room, MSG_DONTWAIT);
  size_t got = 0;
  switch (tls_->Read(to, room, &got)) {
    case TlsChannel::Outcome::kDone:
      return static_cast<ssize_t>(got);
    case TlsChannel::Outcome::kClosed:
      return 0;
    default:
      errno = EAGAIN;
      return -1;
  }
}

void ClientSocket::StartTls(std::shared_ptr<TlsContext> context, int64_t deadline_us) {
  if (!reader_.empty())
    Throw(sqlstate::kProtocolViolation, "received unencrypted data after SSL request");
  tls_ = std::make_unique<TlsChannel>(std::move(context), fd_.get());
  SetQuitClient(-1);  // a handler cannot encrypt its last word
  for (;;) {
    ResetLatch(&my_proc->latch);
    CheckForInterrupts();
    TlsChannel::Outcome outcome = tls_->Handshake();
    if (outcome == TlsChannel::Outcome::kDone) return;
    int64_t left_ms = (deadline_us - MonotonicUs()) / 1000;
    if (left_ms <= 0) throw ClientGone{};
    pollfd fd{fd_.get(),
              static_cast<short>(outcome == TlsChannel::Outcome::kWantWrite ? POLLOUT : POLLIN), 0};
    WaitLatch(&my_proc->latch, {&fd, 1}, static_cast<int>(left_ms), WaitEvent::kClientRead);
  }
}

Woken ClientSocket::WaitForInput(int timeout_ms) {
  pollfd fd{fd_.get(), POLLIN, 0};
  return WaitLatch(&my_proc->latch, {&fd, 1}, timeout_ms, WaitEvent::kClientRead);
}

pollfd ClientSocket::OutputPoll() const {
  // A client that shut down its side waits for nothing more, though its socket may still be open:
  // its full receive buffer would hold the query and its shards for ever.
  bool wants_read = tls_ != nullptr && tls_wants_ == TlsChannel::Outcome::kWantRead;
  return {fd_.get(), static_cast<short>((wants_read ? POLLIN : POLLOUT) | POLLRDHUP), 0};
}

bool ClientSocket::WaitForOutput(bool cancelable) {
  if (cancelable && behind_) return false;
  ResetLatch(&my_proc->latch);
  if (cancelable || my_proc->terminate_requested.load(std::memory_order_relaxed) != 0)
    CheckForInterrupts();
  int timeout_ms = -1;
  if (cancelable && statement_deadline_us != 0)
    timeout_ms = static_cast<int>(
        std::clamp<int64_t>((statement_deadline_us - MonotonicUs()) / 1000 + 1, 0, 1 << 30));
  bool may_fall_behind = cancelable && behind_after_ms_ >= 0;
  if (may_fall_behind && (timeout_ms < 0 || timeout_ms > behind_after_ms_))
    timeout_ms = behind_after_ms_;
  pollfd fd = OutputPoll();
  Woken woken = WaitLatch(&my_proc->latch, {&fd, 1}, timeout_ms, WaitEvent::kClientWrite);
  if ((fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) throw ClientGone{};
  behind_ = may_fall_behind && woken == Woken::kTimeout && OthersAwaitAdmission();
  return !behind_;
}

// Returns how many bytes of `more` left (with TLS: lie in a record that leaves).
size_t ClientSocket::Send(std::string_view more) {
  return tls_ == nullptr ? SendPlain(more) : SendTls(more);
}

// One system call for the buffer's rest and `more`.
size_t ClientSocket::SendPlain(std::string_view more) {
  iovec parts[2] = {{out_.data() + sent_, pending_bytes()},
                    {const_cast<char*>(more.data()), more.size()}};
  msghdr message{};
  message.msg_iov = pending_bytes() > 0 ? parts : parts + 1;
  message.msg_iovlen = (pending_bytes() > 0 ? 1 : 0) + (more.empty() ? 0 : 1);
  size_t wanted = pending_bytes() + more.size();
  BeginSend();
  ssize_t sent = sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  int error = errno;
  // A call that took nothing leaves the stream where it was.
  if (sent > 0) mid_message_ = static_cast<size_t>(sent) < wanted;
  EndSend(mid_message_);
  if (sent < 0) {
    errno = error;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
    throw ClientGone{};
  }
  auto left = static_cast<size_t>(sent);
  size_t of_buffer = std::min(left, pending_bytes());
  DropSent(of_buffer);
  return left - of_buffer;
}

size_t ClientSocket::SendTls(std::string_view more) {
  size_t of_more = 0;
  for (;;) {
    if (record_.empty()) {
      bool from_buffer = pending_bytes() > 0;
      std::string_view from =
          from_buffer ? std::string_view(out_).substr(sent_) : more.substr(of_more);
      record_ = from.substr(0, kTlsRecordBytes);
      if (record_.empty()) return of_more;
      if (from_buffer)
        DropSent(record_.size());
      else
        of_more += record_.size();
    }
    size_t moved = 0;
    TlsChannel::Outcome outcome = tls_->Write(record_, &moved);
    if (outcome == TlsChannel::Outcome::kClosed) throw ClientGone{};
    if (outcome != TlsChannel::Outcome::kDone) {
      tls_wants_ = outcome;
      return of_more;
    }
    record_.erase(0, moved);
  }
}

void ClientSocket::DropSent(size_t bytes) {
  sent_ += bytes;
  if (sent_ < out_.size()) return;
  out_.clear();
  sent_ = 0;
  if (out_.capacity() > 16 * kLargeBytes) out_.shrink_to_fit();
}

void ClientSocket::Flush(bool cancelable) {
  if (broken_) throw ClientGone{};
  while (unsent_bytes() > 0) {
    size_t before = unsent_bytes();
    Send({});
    if (unsent_bytes() == before && !WaitForOutput(cancelable)) return;
  }
}

void ClientSocket::SendMessages(std::string_view messages) {
  if (broken_) throw ClientGone{};
  if (messages.size() < kLargeBytes / 8) {  // not worth a system call of its own
    out_.append(messages);
    FlushIfLarge();
    return;
  }
  bool cancelable = messages.size() <= kCopyMax;
  size_t sent = 0;
  try {
    while (unsent_bytes() > 0 || sent < messages.size()) {
      size_t before = unsent_bytes() + messages.size() - sent;
      sent += Send(messages.substr(sent));
      if (unsent_bytes() + messages.size() - sent == before && !WaitForOutput(cancelable)) {
        out_.append(messages.substr(sent));
        return;
      }
    }
  } catch (const QueryError&) {
    if (cancelable) {
      out_.append(messages.substr(sent, MessageEnd(messages, sent) - sent));
    } else {
      broken_ = sent > 0;
    }
    throw;
  }
}

void ClientSocket::FlushWithoutWaiting() {
  if (broken_) return;
  try {
    for (size_t before = 0; unsent_bytes() > 0 && unsent_bytes() != before;) {
      before = unsent_bytes();
      Send({});
    }
  } catch (const ClientGone&) {
  }
}

bool ClientSocket::PeerIsGone() const {
  pollfd fd{fd_.get(), POLLRDHUP, 0};
  return poll(&fd, 1, 0) == 1 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace sluice
