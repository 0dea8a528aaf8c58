// The Postgres protocol's wider parts against a real shard: every kind of stream, pins, limits,
// faults.
#include <thread>

#include "fdw/shard_for_test.h"

namespace sluice {

TestShard* TheShard();  // io_worker_test.cc

namespace {

class PostgresProtocol : public testing::TestWithParam<IoMethod> {
 protected:
  void SetUp() override {
    if (GetParam() == IoMethod::kIoUring && !MakeIoUringRing().ok()) {
      GTEST_SKIP()
          << "THIS MACHINE FORBIDS io_uring: its tests do not run, the same ones run on epoll";
    }
    shard = TheShard();
    config.io_method = GetParam();
  }
  void StartServer(SharedMemoryConfig memory = {}) { server.emplace(config, memory); }

  // Runs one statement and returns what came.
  Drained Run(StreamKind kind, std::string_view sql, uint64_t pin = 0, std::string_view setup = "",
              ErrorRecord* error = nullptr, std::string* tag = nullptr) {
    TestGroup group(1);
    ConnectionSpec* spec = group.Spec(*shard);
    spec->session_setup = group.arena().CopyString(setup);
    group.Set(0, kind, spec, sql);
    group[0].pin = pin;
    group.Open();
    Drained drained = Drain(&group);
    if (error != nullptr) *error = group[0].error;
    if (tag != nullptr) *tag = group[0].command_tag;
    if (error == nullptr) {
      EXPECT_EQ(drained.states[0], StreamState::kEnded) << sql << ": " << group[0].error.message;
    }
    return drained;
  }
  std::string Value(std::string_view sql, uint64_t pin = 0, std::string_view setup = "") {
    Drained drained = Run(StreamKind::kQuery, sql, pin, setup);
    return drained.text.empty() ? "no row" : drained.text[0];
  }
  void Unpin(uint64_t pin) { SubmitRequest({RequestKind::kUnpin, nullptr, pin, 0}); }
  std::string Connections() {
    return shard->Psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice'");
  }

  TestShard* shard;
  IoWorkerConfig config;
  std::optional<TestServer> server;
};

TEST_P(PostgresProtocol, simple_statements_discard_rows_and_keep_the_last_tag) {
  StartServer();
  std::string tag;
  Drained drained = Run(StreamKind::kSimple,
                        "SELECT * FROM t; CREATE TEMP TABLE x (i int); "
                        "INSERT INTO x SELECT generate_series(1, 7)",
                        0, "", nullptr, &tag);
  EXPECT_EQ(drained.rows, 0u);
  EXPECT_EQ(tag, "INSERT 0 7");
  ErrorRecord error;
  Run(StreamKind::kSimple, "SELECT 1; SELECT 1/0; SELECT 2", 0, "", &error);
  EXPECT_EQ(SqlStateText(error.state), "22012");
  Run(StreamKind::kSimple, "COPY t FROM STDIN", 0, "", &error);
  EXPECT_EQ(SqlStateText(error.state), "57014");
  EXPECT_EQ(Value("SELECT 3"), "3");
}

TEST_P(PostgresProtocol, copy_out_gives_the_copy_rows) {
  StartServer();
  Drained drained =
      Run(StreamKind::kCopyOut, "COPY (SELECT id, name FROM t ORDER BY id) TO STDOUT (FORMAT csv)");
  EXPECT_EQ(drained.rows, 100000u);
  EXPECT_EQ(drained.text[0], "1,row 1\n");
  EXPECT_EQ(drained.text[98], "99,row 99\n");
}

TEST_P(PostgresProtocol, describe_gives_both_descriptions) {
  StartServer();
  TestGroup group(2);
  ConnectionSpec* spec = group.Spec(*shard);
  group.Set(0, StreamKind::kDescribe, spec, "SELECT id, name FROM t WHERE id = $1 AND name = $2");
  group.Set(1, StreamKind::kDescribe, spec, "DELETE FROM t WHERE id = $1");
  group.Open();
  Slice slice;
  std::string seen[2];
  while (group.Next(&slice)) {
    if (slice.kind == SliceKind::kDescription)
      seen[slice.stream] = std::string(slice.data, slice.size_bytes);
    ReleaseSlice(slice);
  }
  ASSERT_EQ(group[0].state.load(), StreamState::kEnded) << group[0].error.message;
  EXPECT_EQ(seen[0][0], 't');
  EXPECT_EQ(seen[0].substr(5, 2), std::string("\0\2", 2));
  EXPECT_EQ(seen[0][15], 'T');
  EXPECT_EQ(group[0].column_count, 2u);
  EXPECT_EQ(group[0].column_types[1], 25u);
  EXPECT_EQ(seen[1][0], 't');
  EXPECT_EQ(seen[1].back(), 4);  // NoData's length
  EXPECT_EQ(seen[1][seen[1].size() - 5], 'n');
}

// The producer's side of a kCopyIn, as a backend has it.
class CopySource {
 public:
  explicit CopySource(TestGroup* group) : group_(group) {
    stream_ = group->arena().NewArray<Stream>(1).data();
    stream_->producer = my_proc_number;
    stream_->chunk_quota = 4;
    stream_->group = group->operator->();
    (*group)->extra_chunks += 4;
    queue_ = MakeReadyQueue(&group->arena(), SlicesMax(4), 1);
    (*group)[0].input = queue_;
  }
  void Put(std::string_view bytes) {
    while (stream_->chunks_in_use.load() >= 4) usleep(100);
    ChunkId chunk = AcquireChunk(&shared_memory->chunks, stream_);
    char* data = ChunkData(shared_memory->chunks, chunk);
    std::memcpy(data, bytes.data(), bytes.size());
    ChunkProducer(queue_).Push({SliceKind::kCopyData, 0, chunk, data, bytes.size(), 0});
  }
  void End() { ChunkProducer(queue_).End(0); }

 private:
  TestGroup* group_;
  Stream* stream_;
  ReadyQueue* queue_;
};

TEST_P(PostgresProtocol, copy_in_sends_rows_and_reports_their_number_or_error) {
  StartServer();
  shard->Psql("DROP TABLE IF EXISTS copied; CREATE TABLE copied (a int, b text)");
  for (bool good : {true, false, true}) {
    TestGroup group(1);
    group.Set(0, StreamKind::kCopyIn, group.Spec(*shard), "COPY copied FROM STDIN (FORMAT csv)");
    CopySource source(&group);
    group.Open();
    while (group->state.load() != GroupState::kAdmitted) usleep(100);
    int row = 0;
    for (int i = 0; i < 20; i++) {
      std::string rows;
      while (rows.size() < 100'000) rows += std::to_string(row++) + ",\"some, text\"\n";
      if (i == 10 && !good) rows = "nonsense,1\n";
      source.Put(rows);
      if (!good && group[0].state.load() == StreamState::kFailed) break;
      if (!good && i >= 10) break;
    }
    source.End();
    Drained drained = Drain(&group);
    if (good) {
      EXPECT_EQ(drained.states[0], StreamState::kEnded) << group[0].error.message;
      EXPECT_EQ(std::string(group[0].command_tag), "COPY " + std::to_string(row));
    } else {
      EXPECT_EQ(SqlStateText(group[0].error.state), "22P02");
    }
  }
  // Closing the group in the middle undoes the COPY.
  std::string before = shard->Psql("SELECT count(*) FROM copied");
  {
    TestGroup group(1);
    group.Set(0, StreamKind::kCopyIn, group.Spec(*shard), "COPY copied FROM STDIN (FORMAT csv)");
    CopySource source(&group);
    group.Open();
    while (group->state.load() != GroupState::kAdmitted) usleep(100);
    source.Put("1,a\n");
    usleep(50'000);
    group.Close();
  }
  EXPECT_EQ(shard->Psql("SELECT count(*) FROM copied"), before);
  EXPECT_EQ(Value("SELECT 1"), "1");
}

TEST_P(PostgresProtocol, settings_of_one_session_do_not_reach_the_next) {
  StartServer();
  EXPECT_EQ(Value("SHOW timezone", 0, "SET TimeZone = 'Asia/Tokyo'; SET role = 'pg_monitor'"),
            "Asia/Tokyo");
  EXPECT_EQ(Value("SELECT current_user", 0, "SET TimeZone = 'Asia/Tokyo'; SET role = 'pg_monitor'"),
            "pg_monitor");
  EXPECT_EQ(Value("SELECT current_user"), "postgres");
  EXPECT_NE(Value("SHOW timezone"), "Asia/Tokyo");
  EXPECT_EQ(Value("SHOW statement_timeout"), "0");
  EXPECT_EQ(Value("SHOW client_connection_check_interval"), "2s");
  ErrorRecord error;
  Run(StreamKind::kQuery, "SELECT 1", 0, "SET TimeZone = 'No/Such'", &error);
  EXPECT_EQ(SqlStateText(error.state), "22023");
  EXPECT_EQ(Value("SHOW client_connection_check_interval"), "2s");
  EXPECT_EQ(Connections(), "1");
}

TEST_P(PostgresProtocol, a_pin_keeps_its_connection_until_unpinned_and_leaves_nothing_behind) {
  StartServer();
  Run(StreamKind::kSimple, "BEGIN; CREATE TEMP TABLE mine (i int); INSERT INTO mine VALUES (5)",
      77);
  EXPECT_EQ(Value("SELECT i FROM mine", 77), "5");
  std::string pid = Value("SELECT pg_backend_pid()", 77);
  EXPECT_NE(Value("SELECT pg_backend_pid()"), pid);
  // Two streams of one group run one after the other.
  {
    TestGroup group(2);
    ConnectionSpec* spec = group.Spec(*shard);
    for (int i = 0; i < 2; i++) {
      group.Set(i, StreamKind::kQuery, spec, "SELECT id FROM t");
      group[i].pin = 77;
    }
    group.Open();
    EXPECT_EQ(Drain(&group).rows, 200000u);
  }
  // Closing a running one does not abort the session's transaction.
  {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT id FROM t");
    group[0].pin = 77;
    group.Open();
    Slice slice;
    ASSERT_TRUE(group.Next(&slice));
    ReleaseSlice(slice);
  }
  EXPECT_EQ(Value("SELECT i FROM mine", 77), "5");
  // A cancel of the pin reaches the stream as the shard's error.
  {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT pg_sleep(100)");
    group[0].pin = 77;
    group.Open();
    usleep(100'000);
    SubmitRequest({RequestKind::kCancelPin, nullptr, 77, 0});
    Drain(&group);
    EXPECT_EQ(SqlStateText(group[0].error.state), "57014");
  }
  Unpin(77);
  usleep(100'000);
  for (int i = 0; i < 4; i++)
    EXPECT_EQ(Value("SELECT count(*) FROM pg_class WHERE relname = 'mine'"), "0");
  EXPECT_EQ(Connections(), "2");
}

TEST_P(PostgresProtocol, streams_of_one_pin_do_not_wait_for_each_others_consumer) {
  StartServer();
  Run(StreamKind::kSimple, "BEGIN", 5);
  // A join in a transaction: the second stream is read first, while the first is not read at all.
  TestGroup group(2);
  ReadyQueue* queues[2];
  for (int i = 0; i < 2; i++) {
    group.Set(i, StreamKind::kQuery, group.Spec(*shard), "SELECT id, name FROM t ORDER BY id");
    group[i].pin = 5;
    group[i].chunk_quota = 2;
    queues[i] = MakeReadyQueue(&group.arena(), SlicesMax(2), 1);
    group[i].output = queues[i];
  }
  OpenStreams(group.operator->());
  for (int i : {1, 0}) {
    ChunkConsumer consumer(queues[i], 0);
    Drained drained;
    Slice slice;
    while (consumer.ClaimOrWait(&slice, WaitEvent::kMergeReady)) {
      if (slice.kind != SliceKind::kEnd) drained.Take(slice);
      ReleaseSlice(slice);
    }
    EXPECT_EQ(drained.rows, 100000u);
    for (int n = 0; n < 100; n++) EXPECT_EQ(drained.text[n], std::to_string(n + 1));
    EXPECT_EQ(group[i].state.load(), StreamState::kEnded);
  }
  group.Close();
  // The same, but closed before the first is read.
  TestGroup closed(2);
  for (int i = 0; i < 2; i++) {
    closed.Set(i, StreamKind::kQuery, closed.Spec(*shard), "SELECT id, name FROM t ORDER BY id");
    closed[i].pin = 5;
    closed[i].chunk_quota = 2;
  }
  closed.Open();
  usleep(100'000);
  closed.Close();
  EXPECT_EQ(Value("SELECT 7", 5), "7");
  Unpin(5);
}

TEST_P(PostgresProtocol, groups_wait_in_turn_for_connections_and_time_out) {
  StartServer();
  auto spec_of = [&](TestGroup& group) {
    ConnectionSpec* spec = group.Spec(*shard);
    spec->connections_max = 2;
    return spec;
  };
  TestGroup first(2);
  for (int i = 0; i < 2; i++) first.Set(i, StreamKind::kQuery, spec_of(first), "SELECT id FROM t");
  first.Open();
  TestGroup second(2);
  for (int i = 0; i < 2; i++) second.Set(i, StreamKind::kQuery, spec_of(second), "SELECT 1");
  second->admission_timeout_us = 100'000;
  second.Open();
  Drained refused = Drain(&second);
  EXPECT_EQ(refused.ends, 2u);
  EXPECT_EQ(refused.states[1], StreamState::kFailed);
  EXPECT_EQ(SqlStateText(second[0].error.state), "53300");
  TestGroup third(1), fourth(3);
  third.Set(0, StreamKind::kQuery, spec_of(third), "SELECT 3");
  third.Open();
  for (int i = 0; i < 3; i++) fourth.Set(i, StreamKind::kQuery, spec_of(fourth), "SELECT 4");
  fourth.Open();
  Drain(&fourth);
  EXPECT_EQ(SqlStateText(fourth[2].error.state), "53300");
  EXPECT_EQ(Drain(&first).rows, 200000u);
  EXPECT_EQ(Drain(&third).rows, 1u);
  EXPECT_EQ(Connections(), "2");
}

TEST_P(PostgresProtocol, groups_wait_for_chunks) {
  SharedMemoryConfig memory;
  memory.chunk_pool_bytes = 8 * memory.chunk_size_bytes;
  StartServer(memory);
  auto first = std::make_unique<TestGroup>(1);
  first->Set(0, StreamKind::kQuery, first->Spec(*shard), "SELECT id FROM t");
  (*first)[0].chunk_quota = 6;
  first->Open();
  TestGroup second(1);
  second.Set(0, StreamKind::kQuery, second.Spec(*shard), "SELECT 2");
  second.Open();
  usleep(50'000);
  EXPECT_EQ(second->state.load(), GroupState::kSubmitted);
  first.reset();
  EXPECT_EQ(Drain(&second).text[0], "2");
  TestGroup third(1);
  third.Set(0, StreamKind::kQuery, third.Spec(*shard), "SELECT 2");
  third[0].chunk_quota = 9;
  third.Open();
  Drain(&third);
  EXPECT_EQ(SqlStateText(third[0].error.state), "53200");
}

TEST_P(PostgresProtocol, prepares_once_and_again_when_the_shard_asks_for_it) {
  config.prepared_statements_max = 3;
  StartServer();
  shard->Psql("DROP TABLE IF EXISTS p; CREATE TABLE p (a int); INSERT INTO p VALUES (1)");
  auto run = [&](std::string_view sql) {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard), sql);
    group[0].prepare = true;
    group.Open();
    Drained drained = Drain(&group);
    EXPECT_EQ(drained.states[0], StreamState::kEnded) << group[0].error.message;
    return std::pair(drained.rows, group[0].column_count);
  };
  EXPECT_EQ(run("SELECT * FROM p").second, 1u);
  EXPECT_EQ(run("SELECT * FROM p").second, 1u);
  shard->Psql("ALTER TABLE p ADD COLUMN b int");
  EXPECT_EQ(run("SELECT * FROM p").second, 2u);
  for (int i = 0; i < 10; i++) run("SELECT " + std::to_string(i));
  EXPECT_EQ(Value("SELECT count(*) <= 5 FROM pg_prepared_statements"), "t");
  Run(StreamKind::kSimple, "DEALLOCATE ALL");
  EXPECT_EQ(run("SELECT 9").first, 1u);
  EXPECT_EQ(Connections(), "1");
}

TEST_P(PostgresProtocol, streams_that_share_a_snapshot_agree_under_updates) {
  StartServer();
  shard->Psql("DROP TABLE IF EXISTS u; CREATE TABLE u AS SELECT 0 AS n");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop)
      shard->Psql("DO 'BEGIN FOR i IN 1..300 LOOP UPDATE u SET n = n + 1; COMMIT; END LOOP; END'");
  });
  for (int round = 0; round < 20; round++) {
    TestGroup group(4);
    ConnectionSpec* spec = group.Spec(*shard);
    for (int i = 0; i < 4; i++) group.Set(i, StreamKind::kQuery, spec, "SELECT n FROM u");
    group->shared_snapshot = true;
    group.Open();
    Drained drained = Drain(&group);
    ASSERT_EQ(drained.rows, 4u) << group[0].error.message << group[1].error.message;
    for (int i = 1; i < 4; i++) EXPECT_EQ(drained.text[i], drained.text[0]);
    if (round % 5 == 0) {  // and one of them fails, another is slow
      TestGroup bad(3);
      ConnectionSpec* same = bad.Spec(*shard);
      bad.Set(0, StreamKind::kQuery, same, round % 2 == 0 ? "SELECT 1/0" : "SELECT 1");
      bad.Set(1, StreamKind::kQuery, same, "SELECT nonsense");
      bad.Set(2, StreamKind::kQuery, same, "SELECT id FROM t");
      bad->shared_snapshot = true;
      bad.Open();
      if (round % 10 == 0) Drain(&bad);
    }
  }
  stop = true;
  writer.join();
  usleep(100'000);
  EXPECT_EQ(shard->Psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice' "
                        "AND state <> 'idle'"),
            "0");
}

TEST_P(PostgresProtocol, snapshot_first_reads_in_a_transaction_of_its_own) {
  StartServer();
  for (int i = 0; i < 3; i++) {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard),
              "SELECT current_setting('transaction_isolation') || "
              "current_setting('transaction_read_only')");
    group->snapshot_first = true;
    group.Open();
    EXPECT_EQ(Drain(&group).text[0], "repeatable readon");
  }
  EXPECT_EQ(Value("SHOW transaction_isolation"), "read committed");
  EXPECT_EQ(Connections(), "1");
}

TEST_P(PostgresProtocol, rows_larger_than_a_chunk_travel_alone_and_in_order) {
  SharedMemoryConfig memory;
  memory.chunk_size_bytes = 4096;
  memory.chunk_pool_bytes = 1 << 20;
  StartServer(memory);
  TestGroup group(1);
  group.Set(0, StreamKind::kQuery, group.Spec(*shard),
            "SELECT i || ' ' || repeat('x', CASE WHEN i % 10 = 0 THEN i * 1000 ELSE i END) "
            "FROM generate_series(1, 100) i");
  group[0].chunk_quota = 2;
  group.Open();
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.states[0], StreamState::kEnded) << group[0].error.message;
  EXPECT_EQ(drained.rows, 100u);
  EXPECT_EQ(drained.oversized, 10u);
  for (int i = 0; i < 100; i++) {
    EXPECT_EQ(drained.text[i].substr(0, drained.text[i].find(' ')), std::to_string(i + 1));
  }
  EXPECT_EQ(Run(StreamKind::kQuery, "SELECT repeat('y', 200000000)").oversized, 1u);
  // Closed in the middle of one.
  TestGroup closed(1);
  closed.Set(0, StreamKind::kQuery, closed.Spec(*shard),
             "SELECT repeat('y', 100000000) FROM generate_series(1, 9)");
  closed.Open();
  Slice slice;
  ASSERT_TRUE(closed.Next(&slice));
  ReleaseSlice(slice);
  usleep(20'000);
  closed.Close();
  EXPECT_EQ(Value("SELECT 5"), "5");
}

TEST_P(PostgresProtocol, every_chunk_size_gives_the_same_rows) {
  uint64_t expected = 0;
  for (uint32_t size : {128u * 1024, 64u, 100u, 128u, 333u, 4096u}) {
    SharedMemoryConfig memory;
    memory.chunk_size_bytes = size;
    memory.chunk_pool_bytes = 200 * 128 * 1024;
    server.reset();
    StartServer(memory);
    Drained drained = Run(StreamKind::kQuery, "SELECT id, name, k, v FROM t WHERE id <= 20000");
    EXPECT_EQ(drained.rows, 20000u);
    if (expected == 0) expected = drained.checksum;
    EXPECT_EQ(drained.checksum, expected) << "chunks of " << size;
  }
}

TEST_P(PostgresProtocol, notices_do_not_disturb_the_rows) {
  StartServer();
  shard->Psql(
      "CREATE OR REPLACE FUNCTION chatty(i int) RETURNS int LANGUAGE plpgsql AS "
      "'BEGIN IF i % 3 = 0 THEN RAISE NOTICE ''now %'', repeat(''z'', i); END IF; RETURN i; END'");
  Drained drained = Run(StreamKind::kQuery, "SELECT chatty(id) FROM t WHERE id <= 3000");
  EXPECT_EQ(drained.rows, 3000u);
  for (size_t i = 0; i < 100; i++) EXPECT_EQ(drained.text[i], std::to_string(i + 1));
}

TEST_P(PostgresProtocol, a_backend_that_dies_is_an_error_and_never_a_short_answer) {
  StartServer();
  for (int i = 0; i < 6; i++) {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard),
              "SELECT a.id, 'victim' FROM t a, t b WHERE b.id < 50");
    group.Open();
    Slice slice;
    ASSERT_TRUE(group.Next(&slice));
    ReleaseSlice(slice);
    shard->Psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%victim%' "
        "AND pid <> pg_backend_pid()");
    Drained drained = Drain(&group);
    EXPECT_EQ(drained.states[0], StreamState::kFailed);
    EXPECT_EQ(SqlStateText(group[0].error.state), "08006");
    // A backend that is stuck in a send closes without a word.
    EXPECT_THAT(std::string(group[0].error.message),
                testing::AnyOf("terminating connection due to administrator command",
                               "server closed the connection unexpectedly"));
    EXPECT_EQ(drained.ends, 1u);
  }
}

TEST_P(PostgresProtocol, an_idle_connection_that_died_is_replaced_unseen) {
  StartServer();
  for (int i = 0; i < 5; i++) {
    EXPECT_EQ(Value("SELECT 1"), "1");
    shard->Psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice'");
    if (i % 2 == 0) usleep(20'000);
  }
  EXPECT_EQ(Value("SELECT 1"), "1");
}

TEST_P(PostgresProtocol, a_silent_server_is_an_error_but_a_held_back_stream_is_not_silent) {
  StartServer();
  TestGroup group(2);
  ConnectionSpec* spec = group.Spec(*shard);
  group.Set(0, StreamKind::kQuery, spec, "SELECT pg_sleep(100)");
  group.Set(1, StreamKind::kQuery, spec, "SELECT id, name FROM t");
  group[0].silence_timeout_us = group[1].silence_timeout_us = 200'000;
  group[1].chunk_quota = 2;
  group.Open();
  usleep(700'000);
  Drained drained = Drain(&group);
  EXPECT_EQ(drained.states[0], StreamState::kFailed);
  EXPECT_EQ(SqlStateText(group[0].error.state), "08006");
  EXPECT_EQ(drained.states[1], StreamState::kEnded);
  EXPECT_EQ(drained.rows, 100000u);
}

TEST_P(PostgresProtocol, wrong_passwords_keep_their_sqlstate) {
  StartServer();
  std::string hba = shard->directory() + "/data/pg_hba.conf";
  std::ifstream in(hba);
  std::string before((std::istreambuf_iterator<char>(in)), {});
  std::ofstream(hba) << "local all pw scram-sha-256\n" << before;
  shard->Psql(
      "DROP ROLE IF EXISTS pw; CREATE ROLE pw LOGIN PASSWORD 'secret'; SELECT pg_reload_conf()");
  usleep(300'000);
  for (std::string password : {"wrong", "secret"}) {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery,
              group.Spec({{"host", shard->directory()},
                          {"port", std::to_string(shard->port())},
                          {"user", "pw"},
                          {"dbname", "postgres"},
                          {"password", password}}),
              "SELECT current_user");
    group.Open();
    Drained drained = Drain(&group);
    if (password == "secret") {
      EXPECT_EQ(drained.text[0], "pw") << group[0].error.detail;
    } else {
      EXPECT_EQ(SqlStateText(group[0].error.state), "28P01");
      EXPECT_THAT(std::string(group[0].error.detail),
                  testing::HasSubstr("password authentication failed"));
      EXPECT_THAT(std::string(group[0].error.detail), testing::Not(testing::HasSubstr("28P01")));
    }
  }
  std::ofstream(hba) << before;
}

TEST_P(PostgresProtocol, tls_gives_the_same_rows_and_cancels) {
  StartServer();
  shard->EnableTls();
  usleep(200'000);
  auto spec_of = [&](TestGroup& group) {
    return group.Spec({{"host", "127.0.0.1"},
                       {"port", std::to_string(shard->port())},
                       {"user", "postgres"},
                       {"dbname", "postgres"},
                       {"sslmode", "require"}});
  };
  Drained plain = Run(StreamKind::kQuery, "SELECT id, name, k, v FROM t");
  for (int i = 0; i < 3; i++) {
    TestGroup group(2);
    group.Set(0, StreamKind::kQuery, spec_of(group), "SELECT id, name, k, v FROM t");
    group.Set(1, StreamKind::kQuery, spec_of(group),
              "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    group.Open();
    Slice slice;
    Drained rows, ssl;
    while (group.Next(&slice)) {
      if (slice.kind != SliceKind::kEnd) (slice.stream == 0 ? rows : ssl).Take(slice);
      ReleaseSlice(slice);
    }
    EXPECT_EQ(rows.checksum, plain.checksum);
    ASSERT_EQ(ssl.rows, 1u) << group[1].error.message << group[1].error.detail;
    EXPECT_EQ(ssl.text[0], "t");
    TestGroup cancelled(1);
    cancelled.Set(0, StreamKind::kQuery, spec_of(cancelled),
                  "SELECT *, 'cancel tls' FROM t a, t b");
    cancelled.Open();
    ASSERT_TRUE(cancelled.Next(&slice));
    ReleaseSlice(slice);
  }
  usleep(300'000);
  EXPECT_EQ(shard->Psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%cancel tls%' "
                        "AND state <> 'idle' AND pid <> pg_backend_pid()"),
            "0");
}

TEST_P(PostgresProtocol, a_shard_that_does_not_heed_a_cancel_loses_its_connection) {
  config.cancel_timeout_us = 600'000;
  StartServer();
  std::string pid = Value("SELECT pg_backend_pid()");
  TestGroup group(1);
  group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT a.id FROM t a, t b");
  group.Open();
  Slice slice;
  ASSERT_TRUE(group.Next(&slice));
  ReleaseSlice(slice);
  kill(std::stoi(pid), SIGSTOP);
  int64_t start = MonotonicMicros();
  group.Close();
  EXPECT_LT(MonotonicMicros() - start, 500'000) << "the backend waits for a shard that hangs";
  EXPECT_NE(Value("SELECT pg_backend_pid()"), pid);
  EXPECT_EQ(shared_memory->shards_connections.load(), 2u);
  usleep(1'300'000);
  EXPECT_EQ(shared_memory->shards_connections.load(), 1u);
  kill(std::stoi(pid), SIGCONT);
  usleep(100'000);
  EXPECT_EQ(shard->Psql("SELECT count(*) FROM pg_stat_activity WHERE pid = " + pid), "0");
}

TEST_P(PostgresProtocol, row_limits_end_the_stream_early) {
  StartServer();
  for (bool own_transaction : {false, true}) {
    TestGroup group(1);
    group.Set(0, StreamKind::kQuery, group.Spec(*shard), "SELECT id FROM t");
    group[0].row_limit = 17;
    group[0].prepare = true;
    group->snapshot_first = own_transaction;
    group.Open();
    Drained drained = Drain(&group);
    EXPECT_EQ(drained.states[0], StreamState::kEnded) << group[0].error.message;
    EXPECT_EQ(drained.rows, 17u);
  }
  EXPECT_EQ(Connections(), "1");
}

TEST_P(PostgresProtocol, closing_at_random_moments_leaves_nothing_running) {
  StartServer();
  unsigned seed = static_cast<unsigned>(getpid());
  SCOPED_TRACE("seed " + std::to_string(seed));
  srand(seed);
  for (int i = 0; i < 150; i++) {
    TestGroup group(3);
    ConnectionSpec* spec = group.Spec(*shard);
    spec->session_setup = rand() % 3 == 0 ? "SET TimeZone = 'UTC'" : "";
    for (int s = 0; s < 3; s++) {
      const char* texts[] = {"SELECT id, name FROM t", "SELECT 1",
                             "SELECT pg_sleep(0.01), 'random'"};
      group.Set(s, rand() % 4 == 0 ? StreamKind::kSimple : StreamKind::kQuery, spec,
                texts[rand() % 3]);
      group[s].chunk_quota = 2 + rand() % 3;
      group[s].prepare = rand() % 2 == 0;
    }
    group->shared_snapshot = rand() % 3 == 0;
    group->snapshot_first = rand() % 3 == 0;
    group.Open();
    usleep(rand() % 5000);
    Slice slice;
    for (int n = rand() % 6; n > 0 && group.Next(&slice); n--) ReleaseSlice(slice);
  }
  EXPECT_EQ(Value("SELECT 6"), "6");
  usleep(600'000);
  EXPECT_EQ(shard->Psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sluice' "
                        "AND state <> 'idle'"),
            "0");
}

INSTANTIATE_TEST_SUITE_P(Rings, PostgresProtocol,
                         testing::Values(IoMethod::kIoUring, IoMethod::kEpoll),
                         [](const auto& info) {
                           return info.param == IoMethod::kEpoll ? "epoll" : "io_uring";
                         });

}  // namespace
}  // namespace sluice
