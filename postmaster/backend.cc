#include "postmaster/backend.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "postmaster/child_process.h"
#include "postmaster/session.h"
#include "postmaster/startup_packet.h"
#include "shm/shared_memory.h"
#include "wire/message.h"

namespace sluice {
namespace {

constexpr int kRejectTimeoutMs = 5000;

Error ErrorFor(Rejection reason) {
  switch (reason) {
    case Rejection::kTooManyClients:
      return MakeError(sqlstate::kTooManyConnections, "sorry, too many clients already");
    case Rejection::kStartingUp:
      return MakeError(sqlstate::kCannotConnectNow, "the database system is starting up");
    case Rejection::kShuttingDown:
      return MakeError(sqlstate::kCannotConnectNow, "the database system is shutting down");
    case Rejection::kRecovering:
      return MakeError(sqlstate::kCannotConnectNow, "the database system is in recovery mode");
  }
  return {};
}

}  // namespace

void BackendMain(UniqueFd client, const BackendConfig& config) {
  int status = 0;
  {
    Session session(std::move(client), config);
    try {
      session.Run();
    } catch (const std::exception& e) {
      // Not a query's error: the state of this process is unknown.
      Log(LogLevel::kPanic, "{}", e.what());
      status = 3;
    }
  }
  ExitChild(status);
}

void RejectMain(UniqueFd client, Rejection reason) {
  MessageReader reader;
  try {
    for (;;) {
      if (auto packet = reader.Take(true)) {
        BodyReader body(packet->body);
        auto code = body.Int<int32_t>();
        if (code == kCancelRequestCode) {
          HandleCancelRequest(body.rest());
          break;
        }
        if (code != kSslRequestCode && code != kGssEncRequestCode) {
          std::string answer;
          WriteErrorResponse(&answer, ErrorFor(reason), "FATAL");
          send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
          break;
        }
        send(client.get(), "N", 1, MSG_NOSIGNAL);
        continue;
      }
      pollfd fd{client.get(), POLLIN, 0};
      if (poll(&fd, 1, kRejectTimeoutMs) <= 0) break;
      size_t room;
      char* to = reader.Buffer(&room);
      ssize_t got = recv(client.get(), to, room, 0);
      if (got <= 0) break;
      reader.Commit(static_cast<size_t>(got));
    }
  } catch (const QueryError& e) {
    LogError(LogLevel::kLog, e.error);
  }
  ExitChild(0);
}

}  // namespace sluice
