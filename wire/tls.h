// TLS to a client, the server's side, over a socket that does not block.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/error.h"

struct ssl_st;
struct ssl_ctx_st;

namespace sluice {

struct TlsFiles {
  std::string certificate, key;
  std::string ca;            // "": client certificates are not asked for
  std::string min_protocol;  // "TLSv1.2", "TLSv1.3"
};

// What all connections share. F0000 for files that cannot be used: a key that others may read, a
// key that does not belong to the certificate.
class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> Load(const TlsFiles& files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsChannel;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* const context_;
};

class TlsChannel {
 public:
  // `fd` is made non-blocking; it stays the caller's.
  TlsChannel(std::shared_ptr<TlsContext> context, int fd);
  ~TlsChannel();

  enum class Outcome : uint8_t { kDone, kWantRead, kWantWrite, kClosed };
  // 08P01 with what OpenSSL says where the handshake fails.
  Outcome Handshake();
  // Both move at least one byte (kDone, *moved > 0), or say what to wait for.
  Outcome Read(char* to, size_t room, size_t* moved);
  Outcome Write(std::string_view bytes, size_t* moved);
  // Decrypted bytes that no poll() of the socket tells of.
  bool has_pending() const;

  // The server certificate's hash for tls-server-end-point (RFC 5929).
  std::string ServerCertificateHash() const;
  // The verified client certificate's common name; "" without one.
  std::string ClientName() const;
  bool has_client_certificate() const;
  const char* protocol() const;
  const char* cipher() const;

 private:
  Outcome Judge(int result);

  const std::shared_ptr<TlsContext> context_;
  ssl_st* ssl_;
};

}  // namespace sluice
