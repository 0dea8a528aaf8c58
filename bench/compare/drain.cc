#include "bench/compare/drain.h"

#include <poll.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include "common/bytes.h"

namespace sluice::bench {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Append(std::string* out, char type, const std::string& body) {
  out->push_back(type);
  char length[4];
  StoreBig<int32_t>(length, static_cast<int32_t>(body.size()) + 4);
  out->append(length, 4).append(body);
}

}  // namespace

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

RawConnection::RawConnection(const std::string& conninfo)
    : connection_(PQconnectdb(conninfo.c_str()), PQfinish) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

void RawConnection::Execute(const std::string& sql) {
  std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_.get(), sql.c_str()),
                                                        PQclear);
  auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(sql + ": " + PQresultErrorMessage(result.get()));
}

void RawConnection::Send(const std::string& sql, bool binary) {
  using std::string;
  string out;
  if (!binary) {
    Append(&out, 'Q', sql + '\0');
  } else {
    Append(&out, 'P', '\0' + sql + '\0' + string(2, '\0'));
    Append(&out, 'B', string(2, '\0') + string(4, '\0') + string("\0\1\0\1", 4));
    Append(&out, 'E', '\0' + string(4, '\0'));
    Append(&out, 'S', "");
  }
  for (size_t sent = 0; sent < out.size();) {
    ssize_t n = send(fd(), out.data() + sent, out.size() - sent, 0);
    if (n > 0)
      sent += static_cast<size_t>(n);
    else if (errno != EAGAIN && errno != EINTR)
      throw std::runtime_error("send failed");
  }
}

bool RawConnection::Receive(char* buffer, size_t size_bytes, Drained* drained) {
  ssize_t n = recv(fd(), buffer, size_bytes, 0);
  if (n == 0) throw std::runtime_error("server closed the connection");
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    throw std::runtime_error("recv failed");
  }
  drained->bytes += static_cast<uint64_t>(n);
  bool ready = false;
  for (const char *at = buffer, *end = buffer + n; at < end;) {
    if (body_left_ > 0) {
      uint32_t step = std::min<uint32_t>(body_left_, static_cast<uint32_t>(end - at));
      if (type_ == 'E') error_.append(at, step);
      body_left_ -= step;
      at += step;
      if (body_left_ > 0) break;
    } else {
      header_[header_bytes_++] = *at++;
      if (header_bytes_ < 5) continue;
      header_bytes_ = 0;
      type_ = header_[0];
      body_left_ = LoadBig<uint32_t>(header_ + 1) - 4;
      if (type_ == 'D' || type_ == 'd') drained->rows++;
    }
    if (body_left_ == 0 && type_ == 'Z') ready = true;
  }
  if (ready && !error_.empty()) throw std::runtime_error("server said: " + error_);
  return ready;
}

Drained Drain(std::vector<std::unique_ptr<RawConnection>>& connections,
              const std::vector<std::string>& statements, bool binary) {
  static std::vector<char> buffer(kBufferBytes);
  Drained drained;
  double start = Now(), cpu = CpuSeconds();
  std::vector<size_t> at(connections.size(), 0);
  std::vector<pollfd> fds;
  for (auto& connection : connections) {
    connection->Send(statements[0], binary);
    fds.push_back({connection->fd(), POLLIN, 0});
  }
  size_t open = connections.size();
  while (open > 0) {
    if (poll(fds.data(), fds.size(), 60'000) <= 0) throw std::runtime_error("no answer for 60 s");
    for (size_t i = 0; i < fds.size(); i++) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      bool ready = connections[i]->Receive(buffer.data(), buffer.size(), &drained);
      if (drained.rows > 0 && drained.first_row_seconds == 0)
        drained.first_row_seconds = Now() - start;
      if (!ready) continue;
      if (++at[i] < statements.size()) {
        connections[i]->Send(statements[at[i]], binary);
      } else {
        fds[i].fd = -1;
        open--;
      }
    }
  }
  drained.seconds = Now() - start;
  drained.reader_cpu_seconds = CpuSeconds() - cpu;
  return drained;
}

}  // namespace sluice::bench
