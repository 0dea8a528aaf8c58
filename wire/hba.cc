#include "wire/hba.h"

#include <arpa/inet.h>
#include <charconv>
#include <sys/socket.h>

namespace sluice {
namespace {

using Words = std::vector<std::vector<HbaLine::Word>>;  // each a list with commas

// One line's words. '#' begins a comment; commas join words to a list. nullopt: a quote is not
// closed.
std::optional<Words> Tokenize(std::string_view line) {
  Words words;
  bool join = false;  // a comma came last
  for (size_t i = 0; i < line.size();) {
    char c = line[i];
    if (c == '#') break;
    if (c == ',') {
      join = !words.empty();
      i++;
    } else if (isspace(static_cast<unsigned char>(c))) {
      i++;
    } else {
      HbaLine::Word word{"", c == '"'};
      if (word.quoted) {
        for (i++;
             i < line.size() && (line[i] != '"' || (i + 1 < line.size() && line[i + 1] == '"'));
             i++) {
          if (line[i] == '"') i++;
          word.text.push_back(line[i]);
        }
        if (i == line.size()) return std::nullopt;
        i++;
      } else {
        while (i < line.size() && !isspace(static_cast<unsigned char>(line[i])) && line[i] != ',' &&
               line[i] != '#')
          word.text.push_back(line[i++]);
      }
      if (!join) words.emplace_back();
      words.back().push_back(std::move(word));
      join = false;
    }
  }
  return words;
}

bool ParseAddress(const std::string& text, int* family, std::string* bytes) {
  char buffer[sizeof(in6_addr)];
  for (int candidate : {AF_INET, AF_INET6}) {
    if (inet_pton(candidate, text.c_str(), buffer) != 1) continue;
    *family = candidate;
    bytes->assign(buffer, candidate == AF_INET ? 4 : 16);
    return true;
  }
  return false;
}

std::string MaskOfBits(int family, int bits) {
  std::string mask(family == AF_INET ? 4 : 16, '\0');
  for (int i = 0; i < bits; i++)
    mask[static_cast<size_t>(i) / 8] |= static_cast<char>(0x80 >> (i % 8));
  return mask;
}

class LineParser {
 public:
  LineParser(const Words& words, HbaLine* line) : words_(words), line_(*line) {}

  // The fault, or "".
  std::string Parse() {
    if (!Single(0)) return "multiple values specified for connection type";
    const std::string& kind = words_[0][0].text;
    if (kind == "local")
      line_.kind = HbaLine::Kind::kLocal;
    else if (kind == "host")
      line_.kind = HbaLine::Kind::kHost;
    else if (kind == "hostssl")
      line_.kind = HbaLine::Kind::kHostSsl;
    else if (kind == "hostnossl")
      line_.kind = HbaLine::Kind::kHostNoSsl;
    else
      return fmt::format("invalid connection type \"{}\"", kind);
    if (words_.size() < 2) return "end-of-line before database specification";
    if (words_.size() < 3) return "end-of-line before role specification";
    line_.databases = words_[1];
    line_.users = words_[2];
    at_ = 3;
    if (line_.kind != HbaLine::Kind::kLocal)
      if (std::string fault = ParsePlace(); !fault.empty()) return fault;
    if (at_ == words_.size()) return "end-of-line before authentication method";
    if (std::string fault = ParseMethod(); !fault.empty()) return fault;
    for (; at_ < words_.size(); at_++)
      for (const HbaLine::Word& word : words_[at_])
        if (std::string fault = ParseOption(word.text); !fault.empty()) return fault;
    return "";
  }

 private:
  bool Single(size_t at) const { return words_[at].size() == 1; }

  std::string ParsePlace() {
    if (at_ == words_.size()) return "end-of-line before IP address specification";
    if (!Single(at_)) return "multiple values specified for host address";
    const HbaLine::Word& word = words_[at_++][0];
    if (!word.quoted && word.text == "all") {
      line_.all_addresses = true;
      return "";
    }
    if (!word.quoted && word.text == "samehost") {
      line_.same_host = true;
      return "";
    }
    size_t slash = word.text.find('/');
    if (!ParseAddress(word.text.substr(0, slash), &line_.family, &line_.address))
      return fmt::format("invalid IP address \"{}\" (host names are not supported)", word.text);
    int bits_max = static_cast<int>(line_.address.size()) * 8;
    if (slash != std::string::npos) {
      int bits = -1;
      const char* end = word.text.data() + word.text.size();
      auto [stop, error] = std::from_chars(word.text.data() + slash + 1, end, bits);
      if (error != std::errc() || stop != end || bits < 0 || bits > bits_max)
        return fmt::format("invalid CIDR mask in address \"{}\"", word.text);
      line_.mask = MaskOfBits(line_.family, bits);
      return "";
    }
    if (at_ == words_.size()) return "end-of-line before netmask specification";
    int mask_family = 0;
    if (!ParseAddress(words_[at_][0].text, &mask_family, &line_.mask))
      return fmt::format("invalid IP mask \"{}\"", words_[at_][0].text);
    if (mask_family != line_.family) return "IP address and mask do not match";
    at_++;
    return "";
  }

  std::string ParseMethod() {
    const std::string& method = words_[at_++][0].text;
    bool local = line_.kind == HbaLine::Kind::kLocal;
    if (method == "trust")
      line_.method = AuthMethod::kTrust;
    else if (method == "reject")
      line_.method = AuthMethod::kReject;
    else if (method == "scram-sha-256")
      line_.method = AuthMethod::kScram;
    else if (method == "peer" && local)
      line_.method = AuthMethod::kPeer;
    else if (method == "cert" && line_.kind == HbaLine::Kind::kHostSsl)
      line_.method = AuthMethod::kCert;
    else if (method == "peer")
      return "peer authentication is only supported on local sockets";
    else if (method == "cert")
      return "cert authentication is only supported on hostssl connections";
    else
      return fmt::format("authentication method \"{}\" is not supported", method);
    if (line_.method == AuthMethod::kCert)
      line_.verify_client_certificate = line_.verify_client_name = true;
    return "";
  }

  std::string ParseOption(const std::string& option) {
    if (option == "clientcert=verify-ca" || option == "clientcert=verify-full") {
      if (line_.kind != HbaLine::Kind::kHostSsl)
        return "clientcert can only be configured for \"hostssl\" rows";
      line_.verify_client_certificate = true;
      if (option == "clientcert=verify-full") line_.verify_client_name = true;
      return "";
    }
    return fmt::format("authentication option \"{}\" is not supported", option);
  }

  const Words& words_;
  HbaLine& line_;
  size_t at_ = 0;
};

bool MatchesAddress(const HbaLine& line, const HbaConnection& connection) {
  if (line.all_addresses) return true;
  if (line.same_host) return connection.address == connection.server_address;
  int family = 0;
  std::string bytes;
  if (!ParseAddress(std::string(connection.address), &family, &bytes) || family != line.family)
    return false;
  for (size_t i = 0; i < bytes.size(); i++)
    if (((bytes[i] ^ line.address[i]) & line.mask[i]) != 0) return false;
  return true;
}

bool MatchesDatabase(const HbaLine& line, const HbaConnection& connection) {
  for (const HbaLine::Word& word : line.databases) {
    if (!word.quoted && word.text == "all") return true;
    if (!word.quoted && word.text == "sameuser" && connection.database == connection.user)
      return true;
    if (word.text == connection.database) return true;
  }
  return false;
}

bool MatchesUser(const HbaLine& line, const HbaConnection& connection) {
  for (const HbaLine::Word& word : line.users) {
    if (!word.quoted && word.text == "all") return true;
    if (!word.quoted && word.text.starts_with('+')) {
      if (connection.is_member && connection.is_member(std::string_view(word.text).substr(1)))
        return true;
    } else if (word.text == connection.user) {
      return true;
    }
  }
  return false;
}

bool MatchesKind(const HbaLine& line, const HbaConnection& connection) {
  bool local = connection.address.empty();
  switch (line.kind) {
    case HbaLine::Kind::kLocal:
      return local;
    case HbaLine::Kind::kHost:
      return !local;
    case HbaLine::Kind::kHostSsl:
      return !local && connection.tls;
    case HbaLine::Kind::kHostNoSsl:
      return !local && !connection.tls;
  }
  return false;
}

}  // namespace

Result<std::vector<HbaLine>> ParseHba(std::string_view text, std::string_view path) {
  std::vector<HbaLine> lines;
  int number = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    number++;
    std::optional<Words> words = Tokenize(line);
    std::string fault = words ? "" : "a quoted word is not closed";
    if (words && words->empty()) continue;
    HbaLine parsed{};
    parsed.line = number;
    if (words) fault = LineParser(*words, &parsed).Parse();
    if (!fault.empty()) {
      Error error = MakeError(sqlstate::kConfigFileError, "{}", fault);
      error.detail = fmt::format("line {} of \"{}\"", number, path);
      return error;
    }
    lines.push_back(std::move(parsed));
  }
  return lines;
}

const HbaLine* MatchHba(const std::vector<HbaLine>& lines, const HbaConnection& connection) {
  for (const HbaLine& line : lines) {
    if (!MatchesKind(line, connection)) continue;
    if (line.kind != HbaLine::Kind::kLocal && !MatchesAddress(line, connection)) continue;
    if (MatchesDatabase(line, connection) && MatchesUser(line, connection)) return &line;
  }
  return nullptr;
}

std::string DefaultHbaText() {
  return R"(# Who may connect, and how he proves who he is. The first line that matches decides.
#
# local  DATABASES USERS         METHOD
# host   DATABASES USERS ADDRESS METHOD      (hostssl, hostnossl: only with, only without TLS)
#
# METHOD: trust, reject, scram-sha-256, peer (local), cert (hostssl).
# Option of hostssl: clientcert=verify-ca or clientcert=verify-full.
# `sluice reload` makes changes known.

local  all  all                trust
host   all  all  127.0.0.1/32  trust
host   all  all  ::1/128       trust
host   all  all  all           scram-sha-256
)";
}

}  // namespace sluice
