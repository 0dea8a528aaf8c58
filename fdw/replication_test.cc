// Logical replication streams against a real shard.
#include <thread>

#include "common/bytes.h"
#include "fdw/shard_for_test.h"

namespace sluice {

TestShard* TheShard();  // io_worker_test.cc

namespace {

class Replication : public testing::Test {
 protected:
  void SetUp() override {
    shard = TheShard();
    server.emplace();
    shard->Psql(
        "DROP TABLE IF EXISTS r; CREATE TABLE r (id int PRIMARY KEY, v text);"
        "DROP PUBLICATION IF EXISTS p; CREATE PUBLICATION p FOR TABLE r");
    shard->Psql("SELECT pg_create_logical_replication_slot('s', 'pgoutput')");
  }
  void TearDown() override {
    server.reset();
    shard->Psql(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
        "WHERE active_pid IS NOT NULL");
    EXPECT_TRUE(EventuallyFree());
    shard->Psql("SELECT pg_drop_replication_slot('s'); ALTER SYSTEM RESET ALL");
    shard->Psql("SELECT pg_reload_conf()");
  }
  bool EventuallyFree() {
    for (int i = 0; i < 100; i++) {
      if (shard->Psql("SELECT active FROM pg_replication_slots") == "f") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  void Open(TestGroup* group) {
    ConnectionSpec* spec = group->Spec({{"host", shard->directory()},
                                        {"port", std::to_string(shard->port())},
                                        {"user", "postgres"},
                                        {"dbname", "postgres"},
                                        {"replication", "database"}});
    group->Set(0, StreamKind::kReplication, spec,
               "START_REPLICATION SLOT s LOGICAL 0/0 (proto_version '1', publication_names 'p', "
               "binary 'true', messages 'true')");
    group->Open();
  }
  // Reads on until so many messages of this kind came; returns how many of 'I' there were.
  void ReadUntil(TestGroup* group, char kind, int count) {
    Slice slice;
    while (seen[kind] < count && group->Next(&slice)) {
      if (slice.kind == SliceKind::kCopyData || slice.kind == SliceKind::kOversized)
        Look(std::string_view(slice.data, slice.size_bytes));
      if (slice.kind == SliceKind::kEnd) ended = true;
      ReleaseSlice(slice);
      if (ended) return;
    }
  }
  void Look(std::string_view data) {
    while (!data.empty()) {
      size_t length = LoadBig<uint32_t>(data.data() + 1);
      std::string_view body = data.substr(5, length - 4);
      data.remove_prefix(1 + length);
      char kind = body[0] == 'w' ? body.at(25) : body[0];
      seen[kind]++;
      if (kind == 'C') last_end = LoadBig<uint64_t>(body.data() + 25 + 10);
    }
  }

  TestShard* shard;
  std::optional<TestServer> server;
  std::map<char, int> seen;
  uint64_t last_end = 0;
  bool ended = false;
};

TEST_F(Replication, changes_come_as_copy_data_and_the_confirmed_position_reaches_the_slot) {
  TestGroup group(1);
  Open(&group);
  shard->Psql("INSERT INTO r SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i");
  shard->Psql("UPDATE r SET v = 'y' WHERE id = 7; DELETE FROM r WHERE id = 8");
  ReadUntil(&group, 'D', 1);
  EXPECT_EQ(seen['R'], 1);
  EXPECT_EQ(seen['I'], 5000);
  EXPECT_EQ(seen['U'], 1);
  ReadUntil(&group, 'C', 2);
  ASSERT_GT(last_end, 0u);
  group[0].confirmed_lsn.store(last_end);
  std::string confirmed;
  for (int i = 0; i < 60 && confirmed != "t"; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    confirmed = shard->Psql("SELECT confirmed_flush_lsn >= '0/" + fmt::format("{:X}", last_end) +
                            "' FROM pg_replication_slots");
  }
  EXPECT_EQ(confirmed, "t");
}

// The shard ends a stream that it hears nothing from, and its question waits behind unread rows.
TEST_F(Replication, a_stream_that_is_held_back_outlives_wal_sender_timeout) {
  shard->Psql("ALTER SYSTEM SET wal_sender_timeout = '3s'");
  shard->Psql("SELECT pg_reload_conf()");
  TestGroup group(1);
  Open(&group);
  shard->Psql("INSERT INTO r SELECT i, repeat('x', 1000) FROM generate_series(1, 30000) i");
  std::this_thread::sleep_for(std::chrono::seconds(8));
  EXPECT_GT(group[0].held_back.load() + group[0].chunks_in_use.load(), 0u);
  ReadUntil(&group, 'C', 1);
  EXPECT_EQ(seen['I'], 30000);
  EXPECT_FALSE(ended);
}

TEST_F(Replication, a_value_larger_than_a_chunk_comes_whole) {
  TestGroup group(1);
  Open(&group);
  shard->Psql(
      "INSERT INTO r SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 50000) i");
  ReadUntil(&group, 'C', 1);
  EXPECT_EQ(seen['I'], 1);
}

TEST_F(Replication, closed_the_slot_is_free_and_can_be_opened_again) {
  {
    TestGroup group(1);
    Open(&group);
    shard->Psql("INSERT INTO r VALUES (1, 'a')");
    ReadUntil(&group, 'C', 1);
  }
  EXPECT_TRUE(EventuallyFree());
  TestGroup group(1);
  Open(&group);
  shard->Psql("INSERT INTO r VALUES (2, 'b')");
  seen.clear();
  ReadUntil(&group, 'C', 2);  // nothing was confirmed: the first comes again
  EXPECT_EQ(seen['I'], 2);
}

TEST_F(Replication, a_stream_whose_shard_goes_away_ends_with_an_error) {
  TestGroup group(1);
  Open(&group);
  shard->Psql("INSERT INTO r VALUES (1, 'a')");
  ReadUntil(&group, 'C', 1);
  shard->Psql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots");
  ReadUntil(&group, 'C', 2);
  EXPECT_TRUE(ended);
  EXPECT_EQ(group[0].state.load(), StreamState::kFailed);
}

}  // namespace
}  // namespace sluice
