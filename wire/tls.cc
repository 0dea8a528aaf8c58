#include "wire/tls.h"

#include <cerrno>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

std::string LastError() {
  char text[256] = "unknown error";
  if (unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

// A key that others can read is no secret. As Postgres: 0600, or 0640 if root owns it.
Status CheckKeyFile(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    return MakeError(sqlstate::kConfigFileError, "could not access private key file \"{}\": {}",
                     path, strerror(errno));
  mode_t forbidden = status.st_uid == 0 ? (S_IWGRP | S_IXGRP | S_IRWXO) : (S_IRWXG | S_IRWXO);
  if ((status.st_mode & forbidden) != 0) {
    Error error = MakeError(sqlstate::kConfigFileError,
                            "private key file \"{}\" has group or world access", path);
    error.detail =
        "File must have permissions u=rw (0600) or less if owned by the server's user, or "
        "permissions u=rw,g=r (0640) or less if owned by root.";
    return error;
  }
  return Ok{};
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::Load(const TlsFiles& files) {
  SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
  if (raw == nullptr)
    return MakeError(sqlstate::kInternalError, "could not create TLS context: {}", LastError());
  std::shared_ptr<TlsContext> context(new TlsContext(raw));
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_min_proto_version(raw,
                                files.min_protocol == "TLSv1.3" ? TLS1_3_VERSION : TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1)
    return MakeError(sqlstate::kConfigFileError,
                     "could not load server certificate file \"{}\": {}", files.certificate,
                     LastError());
  if (Status status = CheckKeyFile(files.key); !status.ok()) return status.error();
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return MakeError(sqlstate::kConfigFileError, "could not load private key file \"{}\": {}",
                     files.key, LastError());
  if (SSL_CTX_check_private_key(raw) != 1)
    return MakeError(sqlstate::kConfigFileError, "check of private key failed: {}", LastError());
  if (!files.ca.empty()) {
    STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(files.ca.c_str());
    if (names == nullptr || SSL_CTX_load_verify_locations(raw, files.ca.c_str(), nullptr) != 1)
      return MakeError(sqlstate::kConfigFileError,
                       "could not load root certificate file \"{}\": {}", files.ca, LastError());
    SSL_CTX_set_client_CA_list(raw, names);
    // Asked for; whether it is needed says the hba line. One that is given must be good.
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, nullptr);
  }
  return context;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

TlsChannel::TlsChannel(std::shared_ptr<TlsContext> context, int fd)
    : context_(std::move(context)), ssl_(SSL_new(context_->context_)) {
  if (ssl_ == nullptr || SSL_set_fd(ssl_, fd) != 1)
    Throw(sqlstate::kInternalError, "could not initialize TLS connection: {}", LastError());
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

TlsChannel::~TlsChannel() {
  SSL_shutdown(ssl_);  // close_notify, if the socket takes it
  ERR_clear_error();
  SSL_free(ssl_);
}

TlsChannel::Outcome TlsChannel::Judge(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return Outcome::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Outcome::kWantWrite;
    default:
      return Outcome::kClosed;
  }
}

TlsChannel::Outcome TlsChannel::Handshake() {
  ERR_clear_error();
  int result = SSL_accept(ssl_);
  if (result == 1) return Outcome::kDone;
  Outcome outcome = Judge(result);
  if (outcome == Outcome::kClosed)
    Throw(sqlstate::kProtocolViolation, "could not accept TLS connection: {}",
          ERR_peek_error() != 0 ? LastError() : "EOF detected");
  return outcome;
}

TlsChannel::Outcome TlsChannel::Read(char* to, size_t room, size_t* moved) {
  ERR_clear_error();
  int result = SSL_read_ex(ssl_, to, room, moved);
  return result == 1 ? Outcome::kDone : Judge(result);
}

TlsChannel::Outcome TlsChannel::Write(std::string_view bytes, size_t* moved) {
  ERR_clear_error();
  int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), moved);
  return result == 1 ? Outcome::kDone : Judge(result);
}

bool TlsChannel::has_pending() const {
  return SSL_pending(ssl_) > 0;
}

std::string TlsChannel::ServerCertificateHash() const {
  X509* certificate = SSL_get_certificate(ssl_);
  int digest = NID_undef;
  if (certificate == nullptr ||
      X509_get_signature_info(certificate, &digest, nullptr, nullptr, nullptr) != 1)
    return "";
  // MD5 and SHA-1 are replaced by SHA-256 (RFC 5929, section 4.1).
  const EVP_MD* algorithm = digest == NID_md5 || digest == NID_sha1 || digest == NID_undef
                                ? EVP_sha256()
                                : EVP_get_digestbynid(digest);
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (algorithm == nullptr || X509_digest(certificate, algorithm, hash, &size) != 1) return "";
  return {reinterpret_cast<char*>(hash), size};
}

bool TlsChannel::has_client_certificate() const {
  return SSL_get0_peer_certificate(ssl_) != nullptr && SSL_get_verify_result(ssl_) == X509_V_OK;
}

std::string TlsChannel::ClientName() const {
  if (!has_client_certificate()) return "";
  const X509_NAME* subject = X509_get_subject_name(SSL_get0_peer_certificate(ssl_));
  int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  const ASN1_STRING* name = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  unsigned char* utf8 = nullptr;
  int length = ASN1_STRING_to_UTF8(&utf8, name);
  if (length < 0) return "";
  std::string text(reinterpret_cast<char*>(utf8), static_cast<size_t>(length));
  OPENSSL_free(utf8);
  // A zero byte inside would end the name early for whoever compares C strings.
  return text.find('\0') == std::string::npos ? text : "";
}

const char* TlsChannel::protocol() const {
  return SSL_get_version(ssl_);
}
const char* TlsChannel::cipher() const {
  return SSL_get_cipher_name(ssl_);
}

}  // namespace sluice
