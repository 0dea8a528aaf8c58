#include "postmaster/listen.h"

#include <cerrno>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "postmaster/settings.h"

namespace sluice {
namespace {

constexpr int kBacklog = 256;

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

// Whether a server answers there: then the file is in use and not a leftover of a crash.
bool SomeoneListens(const sockaddr_un& address) {
  UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Result<ListenSocket> ListenUnix(const std::string& directory, int64_t port) {
  ListenSocket listener;
  listener.unix_path = fmt::format("{}/.s.PGSQL.{}", directory, port);
  listener.address = listener.unix_path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (listener.unix_path.size() >= sizeof address.sun_path)
    return MakeError(sqlstate::kInvalidParameterValue,
                     "Unix-domain socket path \"{}\" is too long (maximum {} bytes)",
                     listener.unix_path, sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, listener.unix_path.c_str(), listener.unix_path.size() + 1);
  struct stat status;
  if (stat(listener.unix_path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode) || SomeoneListens(address))
      return MakeError(sqlstate::kObjectInUse,
                       "could not bind Unix address \"{}\": Address already in use (is another "
                       "server running on port {}?)",
                       listener.unix_path, port);
    unlink(listener.unix_path.c_str());
  }
  listener.fd.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (bind(listener.fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(listener.unix_path.c_str(), 0777) != 0 || listen(listener.fd.get(), kBacklog) != 0)
    return MakeError(sqlstate::kIoError, "could not listen on \"{}\": {}", listener.unix_path,
                     strerror(errno));
  return listener;
}

std::string TextOf(const addrinfo& info) {
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (getnameinfo(info.ai_addr, info.ai_addrlen, host, sizeof host, service, sizeof service,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "?";
  return fmt::format("{}:{}", host, service);
}

void ListenTcp(const std::string& name, int64_t port, std::vector<ListenSocket>* to,
               std::vector<std::string>* warnings) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  int failure = getaddrinfo(name == "*" ? nullptr : name.c_str(), std::to_string(port).c_str(),
                            &hints, &list);
  if (failure != 0) {
    warnings->push_back(
        fmt::format("could not translate host name \"{}\": {}", name, gai_strerror(failure)));
    return;
  }
  for (addrinfo* info = list; info != nullptr; info = info->ai_next) {
    ListenSocket listener;
    listener.address = TextOf(*info);
    listener.fd.Reset(socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int on = 1;
    setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6)
      setsockopt(listener.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(listener.fd.get(), info->ai_addr, info->ai_addrlen) != 0 ||
        listen(listener.fd.get(), kBacklog) != 0) {
      warnings->push_back(fmt::format("could not bind {}: {}", listener.address, strerror(errno)));
      continue;
    }
    to->push_back(std::move(listener));
  }
  freeaddrinfo(list);
}

}  // namespace

Result<std::vector<ListenSocket>> OpenListenSockets(const Settings& settings,
                                                    std::vector<std::string>* warnings) {
  std::vector<ListenSocket> sockets;
  int64_t port = settings.Integer("port");
  auto names = SplitCommas(settings.Text("listen_addresses"));
  for (const std::string& name : names) ListenTcp(name, port, &sockets, warnings);
  if (!names.empty() && sockets.empty())
    return MakeError(sqlstate::kObjectInUse, "could not create any TCP/IP sockets: {}",
                     warnings->empty() ? "no address" : warnings->back());
  for (const std::string& directory : SplitCommas(settings.Text("unix_socket_directories"))) {
    auto listener = ListenUnix(directory, port);
    if (!listener) {
      RemoveUnixSockets(sockets);
      return listener.error();
    }
    sockets.push_back(std::move(*listener));
  }
  if (sockets.empty())
    return MakeError(sqlstate::kConfigFileError, "no socket to listen on is configured");
  return sockets;
}

void RemoveUnixSockets(const std::vector<ListenSocket>& sockets) {
  for (const ListenSocket& socket : sockets)
    if (!socket.unix_path.empty()) unlink(socket.unix_path.c_str());
}

}  // namespace sluice
