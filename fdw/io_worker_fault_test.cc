// Faults from a seed on the ring, shards that stop and come back, and the streams that are not
// Postgres.
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

#include "fdw/shard_for_test.h"

namespace sluice {

TestShard* TheShard();  // io_worker_test.cc

namespace {

class Faults : public testing::TestWithParam<IoMethod> {
 protected:
  void SetUp() override {
    if (GetParam() == IoMethod::kIoUring && !MakeIoUringRing().ok()) {
      GTEST_SKIP()
          << "THIS MACHINE FORBIDS io_uring: its tests do not run, the same ones run on epoll";
    }
    config.io_method = GetParam();
  }
  static uint64_t Seed() {
    const char* given = getenv("SLUICE_TEST_SEED");
    uint64_t seed = given != nullptr ? strtoull(given, nullptr, 10) : std::random_device()();
    printf("SLUICE_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
  }
  IoWorkerConfig config;
};

TEST_P(Faults, short_slow_and_interrupted_operations_change_nothing) {
  config.faults = {Seed(), 500, 300, 200, 200, 0};
  TestServer server(config);
  uint64_t checksum = 0;
  for (int i = 0; i < 4; i++) {
    TestGroup group(3);
    ConnectionSpec* spec = group.Spec(*TheShard());
    group.Set(0, StreamKind::kQuery, spec, "SELECT id, name, k, v FROM t WHERE id <= 30000");
    group.Set(1, StreamKind::kCopyOut, spec, "COPY (SELECT id FROM t WHERE id <= 3000) TO STDOUT");
    group.Set(2, StreamKind::kSimple, spec, "SELECT 1; SELECT 2");
    group->snapshot_first = i % 2 == 0;
    group.Open();
    Drained rows, copied;
    Slice slice;
    while (group.Next(&slice)) {
      if (slice.kind == SliceKind::kDataRows) rows.Take(slice);
      if (slice.kind == SliceKind::kCopyData) copied.Take(slice);
      ReleaseSlice(slice);
    }
    for (int s = 0; s < 3; s++) {
      EXPECT_EQ(group[s].state.load(), StreamState::kEnded) << group[s].error.message;
    }
    EXPECT_EQ(rows.rows, 30000u);
    EXPECT_EQ(copied.rows, 3000u);
    if (i == 0) checksum = rows.checksum;
    EXPECT_EQ(rows.checksum, checksum);
  }
}

TEST_P(Faults, resets_give_an_error_or_the_whole_answer) {
  config.faults = {Seed(), 300, 100, 100, 50, 20};
  TestServer server(config);
  int ended = 0, failed = 0;
  for (int i = 0; i < 60; i++) {
    TestGroup group(2);
    ConnectionSpec* spec = group.Spec(*TheShard());
    for (int s = 0; s < 2; s++) {
      group.Set(s, StreamKind::kQuery, spec, "SELECT id, name FROM t WHERE id <= 2000");
    }
    group->shared_snapshot = i % 3 == 0;
    group.Open();
    uint64_t rows[2] = {}, ends[2] = {};
    Slice slice;
    while (group.Next(&slice)) {
      rows[slice.stream] += slice.rows;
      ends[slice.stream] += slice.kind == SliceKind::kEnd;
      ReleaseSlice(slice);
      if (i % 10 == 9) break;  // and some are closed in the middle
    }
    if (i % 10 == 9) continue;
    for (int s = 0; s < 2; s++) {
      EXPECT_EQ(ends[s], 1u);
      if (group[s].state.load() == StreamState::kEnded) {
        ended++;
        EXPECT_EQ(rows[s], 2000u);
      } else {
        failed++;
        EXPECT_EQ(group[s].state.load(), StreamState::kFailed);
        EXPECT_EQ(SqlStateText(group[s].error.state).substr(0, 2), "08") << group[s].error.message;
      }
    }
  }
  EXPECT_GT(ended, 0);
  printf("%d streams ended, %d failed\n", ended, failed);
}

TEST_P(Faults, a_shard_that_stops_is_an_error_and_works_again_when_it_is_back) {
  TestServer server(config);
  TestShard* shard = TheShard();
  TestGroup group(1);
  group.Set(0, StreamKind::kQuery, group.Spec(*shard),
            "SELECT a.id FROM t a, t b WHERE b.id < 100");
  group.Open();
  Slice slice;
  ASSERT_TRUE(group.Next(&slice));
  ReleaseSlice(slice);
  shard->Stop("immediate");
  Drain(&group);
  EXPECT_EQ(SqlStateText(group[0].error.state), "08006");
  for (int i = 0; i < 3; i++) {
    TestGroup down(1);
    down.Set(0, StreamKind::kQuery, down.Spec(*shard), "SELECT 1");
    down.Open();
    Drain(&down);
    EXPECT_EQ(SqlStateText(down[0].error.state), "08001");
  }
  shard->Start();
  TestGroup back(1);
  back.Set(0, StreamKind::kQuery, back.Spec(*shard), "SELECT 1");
  back.Open();
  EXPECT_EQ(Drain(&back).rows, 1u);
}

TEST_P(Faults, a_forgotten_pools_connections_are_closed) {
  TestServer server(config);
  auto run = [&](bool forget_while_running) {
    TestGroup group(1);
    ConnectionSpec* spec = group.Spec(*TheShard());
    group.Set(0, StreamKind::kQuery, spec, "SELECT pg_backend_pid()");
    group.Open();
    if (forget_while_running) {
      SubmitRequest({RequestKind::kForget, nullptr, 0, PoolKeyHash(spec->pool_key)});
    }
    std::string pid = Drain(&group).text[0];
    if (!forget_while_running) {
      SubmitRequest({RequestKind::kForget, nullptr, 0, PoolKeyHash(spec->pool_key)});
    }
    return pid;
  };
  std::string first = run(false), second = run(true), third = run(true);
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
}

// Accepts one connection, writes `text` in pieces, and closes.
class LineServer {
 public:
  LineServer(std::string text, size_t piece_bytes, bool reset = false) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 1) != 0)
      abort();
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, text = std::move(text), piece_bytes, reset] {
      int fd = accept(listener_, nullptr, nullptr);
      for (size_t at = 0; at < text.size();) {
        ssize_t n =
            send(fd, text.data() + at, std::min(piece_bytes, text.size() - at), MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
        if (piece_bytes < 100) usleep(200);
      }
      if (reset) {
        linger hard{1, 0};
        usleep(50'000);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      }
      close(fd);
    });
  }
  ~LineServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  int port() const { return port_; }

 private:
  int listener_;
  int port_;
  std::thread thread_;
};

struct Lines {
  std::string text;
  uint64_t rows = 0, oversized = 0;
  StreamState state;
  std::string sqlstate;
};

Lines ReadLines(const LineServer& server, int slices_max = 1 << 30) {
  TestGroup group(1);
  group.Set(0, StreamKind::kLines,
            group.Spec({{"host", "127.0.0.1"}, {"port", std::to_string(server.port())}}), "");
  group[0].chunk_quota = 2;
  group.Open();
  Lines lines;
  Slice slice;
  while (slices_max-- > 0 && group.Next(&slice)) {
    lines.text.append(slice.data, slice.size_bytes);
    lines.rows += slice.rows;
    lines.oversized += slice.kind == SliceKind::kOversized;
    if (slice.kind == SliceKind::kLines || slice.kind == SliceKind::kOversized) {
      EXPECT_EQ(slice.data[slice.size_bytes - 1], '\n');
    }
    ReleaseSlice(slice);
  }
  lines.state = group[0].state.load();
  if (lines.state == StreamState::kFailed) lines.sqlstate = SqlStateText(group[0].error.state);
  return lines;
}

TEST_P(Faults, lines_arrive_whole_whatever_the_pieces) {
  SharedMemoryConfig memory;
  memory.chunk_size_bytes = 4096;
  memory.chunk_pool_bytes = 1 << 20;
  TestServer server(config, memory);
  std::string text;
  uint64_t rows = 0;
  for (int i = 0; i < 3000; i++, rows++) {
    text += std::to_string(i) + ",\"a \"\"quoted\"\"\nline\"," +
            std::string(static_cast<size_t>(i % 90), 'x') + "\n";
    if (i % 500 == 7) {
      text += "long,\"" + std::string(static_cast<size_t>(i) * 13 + 4000, '\n') + "\"\n";
      rows++;
    }
  }
  for (size_t piece : {size_t{1} << 20, size_t{1000}}) {
    for (bool newline_at_end : {true, false}) {
      LineServer source(newline_at_end ? text : text.substr(0, text.size() - 1), piece);
      Lines lines = ReadLines(source);
      EXPECT_EQ(lines.state, StreamState::kEnded);
      EXPECT_EQ(lines.rows, rows);
      EXPECT_GE(lines.oversized, 5u);
      EXPECT_TRUE(lines.text == text) << lines.text.size() << " " << text.size();
    }
  }
  std::string small = text.substr(0, 3000) + "\"\nend\n";
  LineServer slow(small, 7);
  EXPECT_TRUE(ReadLines(slow).text == small);
  LineServer empty("", 1);
  EXPECT_EQ(ReadLines(empty).rows, 0u);
  LineServer unterminated("a,b\n1,\"2\n", 100);
  EXPECT_EQ(ReadLines(unterminated).sqlstate, "22P04");
  LineServer long_unterminated("a,b\n1,\"2\n" + std::string(20000, 'x'), 1000);
  EXPECT_EQ(ReadLines(long_unterminated).sqlstate, "22P04");
  LineServer long_last("a,b\n" + std::string(20000, 'x'), 1000);
  EXPECT_EQ(ReadLines(long_last).text.size(), 20005u);
  LineServer reset("a,b\n", 100, true);
  EXPECT_EQ(ReadLines(reset).sqlstate, "08006");
  LineServer closed(text, 1000);
  ReadLines(closed, 3);
  {
    TestGroup group(1);
    group.Set(0, StreamKind::kLines, group.Spec({{"host", "127.0.0.1"}, {"port", "1"}}), "");
    group.Open();
    Drain(&group);
    EXPECT_EQ(SqlStateText(group[0].error.state), "08001");
  }
}

TEST_P(Faults, a_replay_gives_as_many_rows_as_asked_at_the_rate_asked) {
  TestServer server(config);
  std::string file = TheShard()->directory() + "/rows";
  {
    std::ofstream out(file, std::ios::binary);
    for (char i = 0; i < 100; i++) out << std::string("D\0\0\0\xb\0\1\0\0\0\1", 11) << i;
  }
  TestGroup group(2);
  group.Set(0, StreamKind::kReplay, group.Spec({{"file", file}, {"total_rows", "1234567"}}), "");
  group.Set(1, StreamKind::kReplay,
            group.Spec({{"file", file}, {"total_rows", "2000"}, {"rows_per_second", "10000"}}), "");
  int64_t start = MonotonicMicros();
  group.Open();
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.rows, 1236567u);
  EXPECT_EQ(group[1].rows.load(), 2000u);
  EXPECT_GE(MonotonicMicros() - start, 195'000);
  TestGroup missing(1);
  missing.Set(0, StreamKind::kReplay, missing.Spec({{"file", "/nowhere"}, {"total_rows", "1"}}),
              "");
  missing.Open();
  EXPECT_EQ(Drain(&missing).states[0], StreamState::kFailed);
}

INSTANTIATE_TEST_SUITE_P(Rings, Faults, testing::Values(IoMethod::kIoUring, IoMethod::kEpoll),
                         [](const auto& info) {
                           return info.param == IoMethod::kEpoll ? "epoll" : "io_uring";
                         });

}  // namespace
}  // namespace sluice
