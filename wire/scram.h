// SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677, channel binding of RFC 5929), the server's
// side, with Postgres's verifiers: "SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY", all in
// base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/error.h"

namespace sluice {

inline constexpr std::string_view kScramSha256 = "SCRAM-SHA-256";
inline constexpr std::string_view kScramSha256Plus = "SCRAM-SHA-256-PLUS";
inline constexpr int kScramIterations = 4096;

struct ScramVerifier {
  int iterations = 0;
  std::string salt, stored_key, server_key;  // bytes
};

std::optional<ScramVerifier> ParseScramVerifier(std::string_view text);
std::string FormatScramVerifier(const ScramVerifier& verifier);
// With SASLprep (RFC 4013) applied to the password where it is valid UTF-8 that allows it, as
// Postgres does. `salt` empty: a random one.
ScramVerifier MakeScramVerifier(std::string_view password, std::string salt = {},
                                int iterations = kScramIterations);
// For a user that has none: an exchange that always fails, and looks like any other. The same salt
// for the same user as long as `secret` stays.
ScramVerifier MakeMockVerifier(std::string_view user, std::string_view secret);

// One exchange: client-first → ServerFirst → client-final → ServerFinal.
class ScramServer {
 public:
  // `mechanism` is the client's choice; `certificate_hash` the server certificate's
  // (tls-server-end- point), empty without TLS. `doomed`: the verifier is a mock one.
  ScramServer(ScramVerifier verifier, bool doomed, std::string_view mechanism,
              std::string certificate_hash, bool plus_offered);

  // Both throw 08P01 for what is no such message.
  std::string ServerFirst(std::string_view client_first);
  // nullopt: the proof is wrong.
  std::optional<std::string> ServerFinal(std::string_view client_final);

 private:
  void ReadGs2Header(std::string_view* rest);

  const ScramVerifier verifier_;
  const bool doomed_, plus_, plus_offered_;
  const std::string certificate_hash_;
  std::string gs2_header_, client_first_bare_, server_first_, nonce_;
};

std::string Base64Encode(std::string_view bytes);
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace sluice
