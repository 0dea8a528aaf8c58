// Who may connect from where, and how he proves who he is: pg_hba.conf's lines.
//
//   local      DATABASES USERS         METHOD [option=value …]
//   host[ssl|nossl] DATABASES USERS ADDRESS METHOD [option=value …]
//
// DATABASES and USERS are lists with commas: names, "all", "sameuser", "+role" (members too).
// ADDRESS: all, samehost, an address with /bits, or an address and a mask as two words; no host
// names. The first line that matches decides; no line: refused.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace sluice {

enum class AuthMethod : uint8_t { kTrust, kReject, kScram, kCert, kPeer };

struct HbaLine {
  enum class Kind : uint8_t { kLocal, kHost, kHostSsl, kHostNoSsl };
  Kind kind;
  // A quoted word is a name and nothing else.
  struct Word {
    std::string text;
    bool quoted;
  };
  std::vector<Word> databases, users;
  bool all_addresses = false, same_host = false;
  int family = 0;             // AF_INET, AF_INET6
  std::string address, mask;  // bytes, network order
  AuthMethod method;
  bool verify_client_certificate = false;  // clientcert=verify-ca or verify-full
  bool verify_client_name = false;         // verify-full: the certificate's name is the user's
  int line;
};

struct HbaConnection {
  std::string_view address;  // "" for a unix socket
  std::string_view server_address;
  bool tls = false;
  std::string_view database, user;
  // Whether the user is a member of the role, directly or not.
  std::function<bool(std::string_view role)> is_member;
};

// F0000 with `path` and the line's number for what it does not know.
Result<std::vector<HbaLine>> ParseHba(std::string_view text, std::string_view path);
// nullptr: no line matches.
const HbaLine* MatchHba(const std::vector<HbaLine>& lines, const HbaConnection& connection);

// What `sluice init` writes: everyone over the unix socket and loopback, a password from elsewhere.
std::string DefaultHbaText();

}  // namespace sluice
