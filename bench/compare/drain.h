// Plain sockets that read an answer and throw it away: the yardstick ("raw drain") and the client
// that every contender is measured with. Connecting is libpq's; from then on the socket is ours.
#pragma once

#include <cstdint>
#include <libpq-fe.h>
#include <memory>
#include <string>
#include <vector>

namespace sluice::bench {

struct Drained {
  double seconds = 0;            // from the first send to the last ReadyForQuery
  double first_row_seconds = 0;  // until the first DataRow or CopyData, over all connections
  uint64_t rows = 0;
  uint64_t bytes = 0;
  double reader_cpu_seconds = 0;
};

class RawConnection {
 public:
  explicit RawConnection(const std::string& conninfo);
  int fd() const { return PQsocket(connection_.get()); }
  // Before any raw statement: through libpq, waits for the answer.
  void Execute(const std::string& sql);
  // Sends one statement: simple protocol, or extended with results in binary.
  void Send(const std::string& sql, bool binary);
  // Reads what is there; true when ReadyForQuery has come. Throws on an ErrorResponse.
  bool Receive(char* buffer, size_t size_bytes, Drained* drained);

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  // Where the walk over the message headers stands.
  char header_[5];
  int header_bytes_ = 0;
  uint32_t body_left_ = 0;
  char type_ = 0;
  std::string error_;
};

// One statement on every connection at once, or `statements[i]` in turn on each.
Drained Drain(std::vector<std::unique_ptr<RawConnection>>& connections,
              const std::vector<std::string>& statements, bool binary);

double Now();  // seconds, monotonic

}  // namespace sluice::bench
