// The sockets that clients connect to.
#pragma once

#include <string>
#include <vector>

#include "common/error.h"
#include "common/fd.h"

namespace sluice {

class Settings;

struct ListenSocket {
  UniqueFd fd;
  std::string unix_path;  // "" for TCP
  std::string address;    // for the log
};

// All that listen_addresses, unix_socket_directories and port ask for; an error if any unix socket,
// or every address, fails. What failed otherwise is in `warnings`.
Result<std::vector<ListenSocket>> OpenListenSockets(const Settings& settings,
                                                    std::vector<std::string>* warnings);
void RemoveUnixSockets(const std::vector<ListenSocket>& sockets);

}  // namespace sluice
