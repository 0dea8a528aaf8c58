#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "fdw/shard_for_test.h"

namespace sluice {

static TestShard* shard;
TestShard* TheShard() {
  return shard;
}

namespace {

class ShardEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    shard = new TestShard;
    shard->Psql(
        "CREATE TABLE t AS SELECT g AS id, 'row ' || g AS name, g % 7 AS k, "
        "CASE WHEN g % 10 = 0 THEN NULL ELSE g * 1.25 END AS v FROM generate_series(1, 100000) g");
  }
  void TearDown() override { delete shard; }
};
const auto* environment = testing::AddGlobalTestEnvironment(new ShardEnvironment);

// Every test of the Postgres protocol runs on both rings.
class IoWorker : public testing::TestWithParam<IoMethod> {
 protected:
  void SetUp() override {
    if (GetParam() == IoMethod::kIoUring && !MakeIoUringRing().ok()) {
      GTEST_SKIP()
          << "THIS MACHINE FORBIDS io_uring: its tests do not run, the same ones run on epoll";
    }
    IoWorkerConfig config;
    config.io_method = GetParam();
    server.emplace(config);
  }
  std::optional<TestServer> server;
};

TEST_P(IoWorker, drains_a_hundred_thousand_rows_exactly) {
  TestGroup group(1);
  group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT id, name, k, v FROM t");
  group.Open();
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.states[0], StreamState::kEnded) << group[0].error.message;
  EXPECT_EQ(drained.rows, 100000u);
  EXPECT_EQ(drained.ends, 1u);
  EXPECT_EQ(group[0].rows.load(), 100000u);
  EXPECT_EQ(group[0].bytes.load(), drained.bytes);
  EXPECT_STREQ(group[0].command_tag, "SELECT 100000");
  EXPECT_EQ(group[0].column_count, 4u);
  EXPECT_EQ(group[0].column_types[0], 23u);
  EXPECT_EQ(group[0].column_types[3], 1700u);
  // The same rows as messages, made here from what psql says.
  uint64_t checksum = 0, bytes = 0;
  std::stringstream lines(
      shard->Psql("SELECT id || '|' || name || '|' || k || '|' || coalesce(v::text, '') FROM t"));
  for (std::string line; std::getline(lines, line);) {
    std::string message("D\0\0\0\0\0\4", 7);
    std::stringstream fields(line + (line.back() == '|' ? "" : "|"));
    for (int i = 0; i < 4; i++) {
      std::string field;
      std::getline(fields, field, '|');
      int32_t length = __builtin_bswap32(field.empty() ? -1 : static_cast<int32_t>(field.size()));
      message.append(reinterpret_cast<char*>(&length), 4).append(field);
    }
    uint32_t length = __builtin_bswap32(static_cast<uint32_t>(message.size() - 1));
    std::memcpy(message.data() + 1, &length, 4);
    checksum += Drained::Hash(message);
    bytes += message.size();
  }
  EXPECT_EQ(drained.bytes, bytes);
  EXPECT_EQ(drained.checksum, checksum);
}

TEST_P(IoWorker, reports_a_shards_error_with_its_fields) {
  TestGroup group(2);
  ConnectionSpec* spec = group.Spec(*shard);
  group.Set(0, StreamKind::kQuery, spec, "SELECT 1 / (id - 50000) FROM t ORDER BY id");
  group.Set(1, StreamKind::kQuery, spec, "SELECT nonsense FROM t");
  group.Open();
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.states[0], StreamState::kFailed);
  EXPECT_EQ(SqlStateText(group[0].error.state), "22012");
  EXPECT_STREQ(group[0].error.message, "division by zero");
  EXPECT_EQ(drained.states[1], StreamState::kFailed);
  EXPECT_EQ(SqlStateText(group[1].error.state), "42703");
  EXPECT_THAT(std::string(group[1].error.context), testing::HasSubstr("SELECT nonsense"));
  EXPECT_EQ(drained.ends, 2u);
}

TEST_P(IoWorker, reuses_connections_and_gives_params_and_binary_results) {
  std::string pid;
  for (int i = 0; i < 5; i++) {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard),
              "SELECT pg_backend_pid()::text, $1::int8 + 1");
    auto params = group.arena().NewArray<StreamParam>(1);
    params[0] = {20, false, false, "41"};
    auto formats = group.arena().NewArray<int16_t>(2);
    formats[1] = 1;
    group[0].params = params;
    group[0].result_formats = formats;
    group[0].prepare = true;
    group.Open();
    Drained drained = Drain(&group);
    ASSERT_EQ(drained.rows, 1u) << group[0].error.message;
    if (i == 0) pid = drained.text[0];
    EXPECT_EQ(drained.text[0], pid);
  }
}

TEST_P(IoWorker, holds_a_stream_back_when_its_quota_is_used_up) {
  TestGroup group(1);
  group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT id, name, k, v FROM t");
  group[0].chunk_quota = 2;
  group.Open();
  usleep(300'000);
  EXPECT_EQ(group[0].chunks_in_use.load(), 2u);
  EXPECT_EQ(group[0].held_back.load(), 1u);
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.rows, 100000u);
  EXPECT_GT(group[0].held_back_us.load(), 200'000);
}

TEST_P(IoWorker, cancels_at_the_shard_when_a_running_group_is_closed) {
  for (int i = 0; i < 10; i++) {
    TestGroup group(2);
    ConnectionSpec* spec = group.Spec(*shard);
    group.Set(0, StreamKind::kQuery, spec, "SELECT *, 'cancel me' FROM t a, t b");
    group.Set(1, StreamKind::kQuery, spec, "SELECT pg_sleep(100), 'cancel me'");
    group.Open();
    Slice slice;
    if (i % 2 == 0) {
      ASSERT_TRUE(group.Next(&slice));
      ReleaseSlice(slice);
    }
    usleep(i * 3000);
    int64_t start = MonotonicMicros();
    group.Close();
    EXPECT_LT(MonotonicMicros() - start, 1'000'000);
    EXPECT_EQ(group[0].state.load(), StreamState::kCancelled);
  }
  usleep(1'200'000);
  EXPECT_EQ(shard->Psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%cancel me%' "
                        "AND state <> 'idle' AND pid <> pg_backend_pid()"),
            "0");
  // The connections are as good as new.
  TestGroup group(2);
  ConnectionSpec* spec = group.Spec(*shard);
  group.Set(0, StreamKind::kQuery, spec, "SELECT 1");
  group.Set(1, StreamKind::kQuery, spec, "SELECT 2");
  group.Open();
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.rows, 2u);
}

TEST_P(IoWorker, says_why_it_cannot_connect) {
  TestGroup group(1);
  auto* spec = group.Spec({{"host", "/tmp/nowhere"}, {"port", "1"}, {"user", "u"}});
  group.Set(0, StreamKind::kQuery, spec, "SELECT 1");
  group.Open();
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.states[0], StreamState::kFailed);
  EXPECT_EQ(SqlStateText(group[0].error.state), "08001");
  EXPECT_STREQ(group[0].error.message, "could not connect to server \"s1\"");
  EXPECT_THAT(std::string(group[0].error.detail), testing::HasSubstr("/tmp/nowhere"));
}

TEST_P(IoWorker, closes_a_group_unasked_when_its_streams_have_ended) {
  TestGroup group(2);
  for (int i = 0; i < 2; i++) group.Set(i, StreamKind::kQuery, group.Spec(*shard), "SELECT 1");
  group.Open();
  EXPECT_EQ(Drain(&group).rows, 2u);
  for (int i = 0; i < 1000 && group->state.load() != GroupState::kClosed; i++) usleep(1000);
  EXPECT_EQ(group->state.load(), GroupState::kClosed);
}

// As container profiles do it: the system call fails with EPERM.
void ForbidIoUring() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) abort();
}

TEST(IoWorkerWithoutIoUring, falls_back_to_epoll_and_says_so) {
  for (IoMethod method : {IoMethod::kAuto, IoMethod::kIoUring}) {
    IoWorkerConfig config;
    config.io_method = method;
    TestServer server(config, {}, ForbidIoUring);
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT id FROM t");
    group.Open();
    EXPECT_EQ(Drain(&group).rows, 100000u);
    EXPECT_EQ(shared_memory->io_uses_epoll.load(), 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, IoWorker, testing::Values(IoMethod::kIoUring, IoMethod::kEpoll),
                         [](const auto& info) {
                           return info.param == IoMethod::kEpoll ? "epoll" : "io_uring";
                         });

}  // namespace
}  // namespace sluice
