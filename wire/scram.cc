#include "wire/scram.h"

#include <charconv>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <unicode/usprep.h>
#include <unicode/ustring.h>
#include <vector>

namespace sluice {
namespace {

constexpr size_t kKeyBytes = SHA256_DIGEST_LENGTH;
constexpr size_t kSaltBytes = 16, kNonceBytes = 18;

std::string Hmac(std::string_view key, std::string_view text) {
  std::string out(kKeyBytes, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  return out;
}

std::string Sha256(std::string_view text) {
  std::string out(kKeyBytes, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string RandomBytes(size_t count) {
  std::string out(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(count)) != 1)
    Throw(sqlstate::kInternalError, "could not generate random bytes");
  return out;
}

// The password as it is hashed: what SASLprep makes of it, or itself where that is undefined.
std::string SaslPrep(std::string_view password) {
  UErrorCode status = U_ZERO_ERROR;
  std::vector<UChar> source(password.size() + 1), prepared(password.size() * 4 + 16);
  int32_t length = 0;
  u_strFromUTF8(source.data(), static_cast<int32_t>(source.size()), &length, password.data(),
                static_cast<int32_t>(password.size()), &status);
  UStringPrepProfile* profile = usprep_openByType(USPREP_RFC4013_SASLPREP, &status);
  if (U_FAILURE(status)) return std::string(password);
  UParseError where;
  int32_t prepared_length =
      usprep_prepare(profile, source.data(), length, prepared.data(),
                     static_cast<int32_t>(prepared.size()), USPREP_DEFAULT, &where, &status);
  usprep_close(profile);
  if (U_FAILURE(status) || prepared_length == 0) return std::string(password);
  std::string out(static_cast<size_t>(prepared_length) * 3 + 1, '\0');
  int32_t bytes = 0;
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &bytes, prepared.data(),
              prepared_length, &status);
  if (U_FAILURE(status)) return std::string(password);
  out.resize(static_cast<size_t>(bytes));
  return out;
}

[[noreturn]] void Malformed(std::string_view detail) {
  Error error = MakeError(sqlstate::kProtocolViolation, "malformed SCRAM message");
  error.detail = detail;
  throw QueryError{error};
}

// "x=value" up to the next comma; takes the comma too.
std::string_view TakeAttribute(std::string_view* rest, char name) {
  if (rest->size() < 2 || (*rest)[0] != name || (*rest)[1] != '=')
    Malformed(fmt::format("Expected attribute \"{}\".", name));
  size_t comma = rest->find(',');
  std::string_view value = rest->substr(2, comma == std::string_view::npos ? comma : comma - 2);
  rest->remove_prefix(comma == std::string_view::npos ? rest->size() : comma + 1);
  return value;
}

bool IsNonce(std::string_view text) {
  for (char c : text)
    if (c < 0x21 || c > 0x7e || c == ',') return false;
  return !text.empty();
}

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                               reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(length));
  return out;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  // EVP_DecodeBlock takes white space and padding in places where they do not belong.
  for (char c : text.substr(0, text.size() - padding))
    if (!isalnum(static_cast<unsigned char>(c)) && c != '+' && c != '/') return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                               reinterpret_cast<const unsigned char*>(text.data()),
                               static_cast<int>(text.size()));
  if (length < 0) return std::nullopt;
  out.resize(static_cast<size_t>(length) - padding);
  return out;
}

std::optional<ScramVerifier> ParseScramVerifier(std::string_view text) {
  std::string prefix = std::string(kScramSha256) + "$";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  size_t colon = text.find(':'), dollar = text.find('$');
  if (colon == std::string_view::npos || dollar == std::string_view::npos || dollar < colon)
    return std::nullopt;
  size_t last = text.find(':', dollar);
  if (last == std::string_view::npos) return std::nullopt;
  ScramVerifier verifier;
  auto [end, error] = std::from_chars(text.data(), text.data() + colon, verifier.iterations);
  if (error != std::errc() || end != text.data() + colon || verifier.iterations < 1)
    return std::nullopt;
  auto salt = Base64Decode(text.substr(colon + 1, dollar - colon - 1));
  auto stored_key = Base64Decode(text.substr(dollar + 1, last - dollar - 1));
  auto server_key = Base64Decode(text.substr(last + 1));
  if (!salt || !stored_key || !server_key || stored_key->size() != kKeyBytes ||
      server_key->size() != kKeyBytes)
    return std::nullopt;
  verifier.salt = *salt;
  verifier.stored_key = *stored_key;
  verifier.server_key = *server_key;
  return verifier;
}

std::string FormatScramVerifier(const ScramVerifier& verifier) {
  return fmt::format("{}${}:{}${}:{}", kScramSha256, verifier.iterations,
                     Base64Encode(verifier.salt), Base64Encode(verifier.stored_key),
                     Base64Encode(verifier.server_key));
}

ScramVerifier MakeScramVerifier(std::string_view password, std::string salt, int iterations) {
  if (salt.empty()) salt = RandomBytes(kSaltBytes);
  std::string prepared = SaslPrep(password);
  std::string salted(kKeyBytes, '\0');
  PKCS5_PBKDF2_HMAC(prepared.data(), static_cast<int>(prepared.size()),
                    reinterpret_cast<const unsigned char*>(salt.data()),
                    static_cast<int>(salt.size()), iterations, EVP_sha256(), kKeyBytes,
                    reinterpret_cast<unsigned char*>(salted.data()));
  return {.iterations = iterations,
          .salt = std::move(salt),
          .stored_key = Sha256(Hmac(salted, "Client Key")),
          .server_key = Hmac(salted, "Server Key")};
}

ScramVerifier MakeMockVerifier(std::string_view user, std::string_view secret) {
  return {.iterations = kScramIterations,
          .salt = Hmac(secret, user).substr(0, kSaltBytes),
          .stored_key = std::string(kKeyBytes, '\0'),
          .server_key = std::string(kKeyBytes, '\0')};
}

ScramServer::ScramServer(ScramVerifier verifier, bool doomed, std::string_view mechanism,
                         std::string certificate_hash, bool plus_offered)
    : verifier_(std::move(verifier)),
      doomed_(doomed),
      plus_(mechanism == kScramSha256Plus),
      plus_offered_(plus_offered),
      certificate_hash_(std::move(certificate_hash)) {
  if (!plus_ && mechanism != kScramSha256)
    Throw(sqlstate::kProtocolViolation, "client selected an invalid SASL authentication mechanism");
  if (plus_ && !plus_offered_)
    Throw(sqlstate::kProtocolViolation, "client selected an invalid SASL authentication mechanism");
}

// "n,,": the client has no channel binding; "y,,": it has, but believes that the server has not;
// "p=tls-server-end-point,,": it is used.
void ScramServer::ReadGs2Header(std::string_view* rest) {
  std::string_view whole = *rest;
  char flag = rest->empty() ? '\0' : rest->front();
  if (flag == 'p') {
    if (!plus_)
      Malformed(
          "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message "
          "includes channel binding data.");
    std::string_view type = TakeAttribute(rest, 'p');
    if (type != "tls-server-end-point")
      Throw(sqlstate::kProtocolViolation, "unsupported SCRAM channel-binding type \"{}\"", type);
  } else if (flag == 'n' || flag == 'y') {
    if (plus_)
      Malformed(
          "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel "
          "binding data.");
    if (flag == 'y' && plus_offered_)
      Throw(sqlstate::kInvalidAuthorizationSpecification,
            "SCRAM channel binding negotiation error");
    if (rest->size() < 2 || (*rest)[1] != ',') Malformed("Comma expected.");
    rest->remove_prefix(2);
  } else {
    Malformed("Unexpected channel-binding flag.");
  }
  if (rest->starts_with("a="))
    Throw(sqlstate::kFeatureNotSupported,
          "client uses authorization identity, but it is not supported");
  if (!rest->starts_with(',')) Malformed("Comma expected.");
  rest->remove_prefix(1);
  gs2_header_ = whole.substr(0, whole.size() - rest->size());
}

std::string ScramServer::ServerFirst(std::string_view client_first) {
  std::string_view rest = client_first;
  ReadGs2Header(&rest);
  client_first_bare_ = rest;
  if (rest.starts_with("m="))
    Throw(sqlstate::kFeatureNotSupported, "client requires an unsupported SCRAM extension");
  TakeAttribute(&rest, 'n');  // the start-up packet's user counts
  std::string_view client_nonce = TakeAttribute(&rest, 'r');
  if (!IsNonce(client_nonce)) Malformed("Non-printable characters in SCRAM nonce.");
  nonce_ = std::string(client_nonce) + Base64Encode(RandomBytes(kNonceBytes));
  server_first_ =
      fmt::format("r={},s={},i={}", nonce_, Base64Encode(verifier_.salt), verifier_.iterations);
  return server_first_;
}

std::optional<std::string> ScramServer::ServerFinal(std::string_view client_final) {
  std::string_view rest = client_final;
  std::string_view binding = TakeAttribute(&rest, 'c');
  std::string_view nonce = TakeAttribute(&rest, 'r');
  while (!rest.empty() && !rest.starts_with("p=")) {  // extensions
    size_t comma = rest.find(',');
    if (comma == std::string_view::npos) Malformed("Expected attribute \"p\".");
    rest.remove_prefix(comma + 1);
  }
  std::string_view without_proof = client_final.substr(0, client_final.size() - rest.size() - 1);
  std::optional<std::string> proof = Base64Decode(TakeAttribute(&rest, 'p'));
  if (!proof || proof->size() != kKeyBytes) Malformed("Malformed proof in client-final-message.");
  if (!rest.empty()) Malformed("Garbage found at the end of client-final-message.");
  if (nonce != nonce_) Malformed("Nonce does not match.");
  if (binding != Base64Encode(gs2_header_ + (plus_ ? certificate_hash_ : "")))
    Throw(sqlstate::kInvalidAuthorizationSpecification, "{}",
          plus_ ? "SCRAM channel binding check failed"
                : "unexpected SCRAM channel-binding attribute in client-final-message");

  std::string message = client_first_bare_ + "," + server_first_ + "," + std::string(without_proof);
  std::string client_key = Hmac(verifier_.stored_key, message);
  for (size_t i = 0; i < kKeyBytes; i++)
    client_key[i] = static_cast<char>(client_key[i] ^ (*proof)[i]);
  bool right =
      CRYPTO_memcmp(Sha256(client_key).data(), verifier_.stored_key.data(), kKeyBytes) == 0;
  if (doomed_ || !right) return std::nullopt;
  return "v=" + Base64Encode(Hmac(verifier_.server_key, message));
}

}  // namespace sluice
