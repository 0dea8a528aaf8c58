// Bytes in and out of one socket over the ring, plain or through TLS. Does not own the descriptor.
#pragma once

#include <cstdint>
#include <string>

#include "fdw/io_ring.h"

typedef struct ssl_st SSL;

namespace sluice {

class RemoteSocket {
 public:
  class User {
   public:
    // > 0 bytes received, 0 end of file, < 0 -errno (-ECANCELED after CancelReceive).
    virtual void OnReceived(int result) = 0;
    // Everything given to Send has left, or the socket is broken (-errno).
    virtual void OnSent(int result) = 0;

   protected:
    ~User() = default;
  };

  RemoteSocket(IoRing* ring, User* user);
  RemoteSocket(const RemoteSocket&) = delete;
  ~RemoteSocket();  // REQUIRES: !busy()

  // Takes the socket over at a point where no one else reads or writes it. `tls` may be null.
  void Attach(int fd, SSL* tls);
  bool attached() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  // One at a time; ends in OnReceived, never from within this call.
  void Receive(char* to, size_t room_bytes);
  bool receiving() const { return room_ != nullptr; }
  void CancelReceive();

  // What is to be sent is appended here, then Flush() sends it; more may be added while it is under
  // way.
  std::string* out() { return &out_; }
  void Flush();
  bool sending() const { return !sending_.empty(); }
  size_t unsent_bytes() const { return sending_.size() - sent_ + out_.size(); }

  // What is there at once: > 0 bytes, 0 end of file, -errno (-EAGAIN: nothing). REQUIRES:
  // !receiving().
  int TryReceive(char* to, size_t room_bytes);
  // A Terminate message, if it goes out at once.
  void SayGoodbye();

  // After it every operation ends soon, with an error or end of file.
  void Shutdown();
  bool busy() const { return receive_.in_flight || send_.in_flight; }

 private:
  void OnReceiveDone(int result);
  void OnSendDone(int result);
  void ReceiveTls();
  void ContinueSend();
  void EndReceive(int result);

  IoRing* const ring_;
  User* const user_;
  int fd_ = -1;
  SSL* tls_ = nullptr;

  IoOperation receive_;  // with TLS: a poll, then SSL_read
  char* room_ = nullptr;
  size_t room_bytes_ = 0;
  bool cancelled_ = false;

  IoOperation send_;
  std::string out_;
  std::string sending_;
  size_t sent_ = 0;
  bool send_polls_ = false;  // TLS: `send_` is a poll, after which SSL_write goes on
};

}  // namespace sluice
