// The seam on epoll, for where io_uring is forbidden. An operation is tried at once; if it would
// block, its descriptor is armed (one shot) and it is tried again when the descriptor is ready.
#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <vector>

#include "common/assert.h"
#include "common/fd.h"
#include "fdw/io_ring.h"

namespace sluice {
namespace {

class EpollRing final : public IoRing {
 public:
  explicit EpollRing(int epoll_fd) : epoll_(epoll_fd) {}

  void Receive(IoOperation* operation, int fd, char* to, size_t size_bytes) override {
    Begin(operation, IoOperation::Kind::kReceive, fd, to, size_bytes, 0);
  }
  void Send(IoOperation* operation, int fd, const char* from, size_t size_bytes) override {
    Begin(operation, IoOperation::Kind::kSend, fd, const_cast<char*>(from), size_bytes, 0);
  }
  void Poll(IoOperation* operation, int fd, short events) override {
    Begin(operation, IoOperation::Kind::kPoll, fd, nullptr, 0, events);
  }

  void Cancel(IoOperation* operation) override {
    if (!operation->in_flight || operation->fd < 0) return;
    Watch& watch = WatchOf(operation->fd);
    if (watch.reader == operation) {
      watch.reader = nullptr;
    } else if (watch.writer == operation) {
      watch.writer = nullptr;
    } else {
      return;  // its completion is queued already
    }
    Enqueue(operation, -ECANCELED);
  }

  void Wait(int64_t timeout_us) override {
    if (has_completions()) timeout_us = 0;
    int timeout_ms = timeout_us < 0 ? -1 : static_cast<int>((timeout_us + 999) / 1000);
    epoll_event events[256];
    int count = epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
    SLUICE_ASSERT(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; i++) Ready(events[i].data.fd, events[i].events);
  }

  bool needs_blocking_sockets() const override { return false; }
  const char* name() const override { return "epoll"; }

 private:
  struct Watch {
    IoOperation* reader = nullptr;
    IoOperation* writer = nullptr;
  };

  Watch& WatchOf(int fd) {
    if (static_cast<size_t>(fd) >= watches_.size()) watches_.resize(fd + 64);
    return watches_[fd];
  }

  void Begin(IoOperation* operation, IoOperation::Kind kind, int fd, char* buffer,
             size_t size_bytes, short events) {
    SLUICE_ASSERT(!operation->in_flight);
    operation->in_flight = true;
    operation->kind = kind;
    operation->fd = fd;
    operation->buffer = buffer;
    operation->size_bytes = size_bytes;
    operation->events = events;
    if (Try(operation)) return;
    Watch& watch = WatchOf(fd);
    bool writes = kind == IoOperation::Kind::kSend || events == POLLOUT;
    IoOperation*& place = writes ? watch.writer : watch.reader;
    SLUICE_ASSERT(place == nullptr);
    place = operation;
    Arm(fd, watch);
  }

  // Whether the operation is done (and its completion queued).
  bool Try(IoOperation* operation) {
    ssize_t rc = -1;
    switch (operation->kind) {
      case IoOperation::Kind::kReceive:
        rc = recv(operation->fd, operation->buffer, operation->size_bytes, MSG_DONTWAIT);
        break;
      case IoOperation::Kind::kSend:
        rc = send(operation->fd, operation->buffer, operation->size_bytes,
                  MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
      case IoOperation::Kind::kPoll: {
        pollfd one{operation->fd, operation->events, 0};
        if (poll(&one, 1, 0) <= 0) return false;
        Enqueue(operation, one.revents);
        return true;
      }
    }
    if (rc < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    Enqueue(operation, rc < 0 ? -errno : static_cast<int>(rc));
    return true;
  }

  void Arm(int fd, const Watch& watch) {
    epoll_event event{};
    event.data.fd = fd;
    event.events = EPOLLONESHOT;
    if (watch.reader != nullptr) {
      event.events |= EPOLLIN | EPOLLRDHUP;
      if (watch.reader->events & POLLOUT) event.events |= EPOLLOUT;
    }
    if (watch.writer != nullptr) event.events |= EPOLLOUT;
    // A descriptor that was closed meanwhile has left the set by itself, hence both ways.
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return;
    SLUICE_ASSERT(errno == ENOENT);
    int rc = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    SLUICE_ASSERT(rc == 0);
  }

  void Ready(int fd, uint32_t events) {
    Watch& watch = WatchOf(fd);
    constexpr uint32_t broken = EPOLLERR | EPOLLHUP;
    if (watch.reader != nullptr && (events & (EPOLLIN | EPOLLRDHUP | EPOLLOUT | broken)) != 0 &&
        Try(watch.reader)) {
      watch.reader = nullptr;
    }
    if (watch.writer != nullptr && (events & (EPOLLOUT | broken)) != 0 && Try(watch.writer)) {
      watch.writer = nullptr;
    }
    if (watch.reader != nullptr || watch.writer != nullptr) Arm(fd, watch);
  }

  UniqueFd epoll_;
  std::vector<Watch> watches_;  // by descriptor
};

}  // namespace

Result<std::unique_ptr<IoRing>> MakeEpollRing() {
  int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) {
    return MakeError(sqlstate::kInternalError, "could not create epoll set: {}",
                     std::strerror(errno));
  }
  return std::unique_ptr<IoRing>(new EpollRing(fd));
}

}  // namespace sluice
