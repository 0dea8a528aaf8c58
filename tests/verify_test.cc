// sluice.verify: it finds a damaged row, and nothing where there is nothing, also while others
// write.
#include "tests/live_view_for_test.h"

namespace sluice::test {
namespace {

class Verify : public LiveView {
 protected:
  // Down, damaged, up again.
  void Damage(const std::string& view, const std::string& how) {
    std::string oid = Job(view), directory = cluster_->directory() + "/sluice";
    std::string program = SluiceBinary();
    program = program.substr(0, program.rfind('/')) + "/tests/damage_view";
    ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "stop", "-D", directory}), 0);
    EXPECT_EQ(cluster_->RunAsOwner({program, directory + "/views", oid, how}), 0);
    ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "start", "-D", directory}), 0);
    client_.emplace(cluster_->Url());
  }
};

TEST_F(Verify, ADamagedRowIsReported) {
  MakeTable("a", "id int PRIMARY KEY, g int, v text", 1000, "i, i % 4, 'row ' || i");
  MakeView("m", "SELECT id, v FROM a");
  MakeView("sums", "SELECT g, count(*) AS n FROM a GROUP BY g");
  ExpectVerified("m");
  ExpectVerified("sums");
  Damage("m", "drop");
  EXPECT_EQ(client_->Must("SELECT * FROM sluice.verify('m')").Text(false),
            "[{\"id\":\"1000000\",\"v\":\"row 1000000\"}] [0] [1] \n");
  ExpectVerified("sums");
  // One row of the view is stored at the place of another.
  Damage("sums", "copy");
  Answer differences = client_->Must("SELECT sluice.verify('sums')");
  EXPECT_EQ(differences.rows.size(), 2u) << differences.Text(false);
  client_->Must("REFRESH MATERIALIZED VIEW m");
  client_->Must("REFRESH MATERIALIZED VIEW sums");
  ExpectVerified("m");
  ExpectVerified("sums");
}

TEST_F(Verify, ThereAreNoFalseDifferencesWhileOthersWrite) {
  MakeTable("a", "id int PRIMARY KEY, g int, n numeric, f float8", 5000,
            "i, i % 50, i / 3.0, i / 7.0");
  MakeView("copy", "SELECT * FROM a");
  MakeView("sums", "SELECT g, count(*), sum(n) AS n, sum(f) AS f, max(n) FROM copy GROUP BY g");
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int w = 0; w < 6; w++)
    writers.emplace_back([&, w] {
      // Half of them on the shards, half through Sluice over both.
      int shard = w % 2 + 1;
      Client client(w < 4 ? cluster_->ShardUrl(shard) : cluster_->Url());
      for (int i = 0; !stop; i++) {
        int id = shard * 1000000 + (i * 37 + w * 11) % 6000, other = 3000000 - id;
        client.Query(
            fmt::format("BEGIN; UPDATE a SET n = n + 1, f = f / 3 WHERE id IN ({}, {}); "
                        "DELETE FROM a WHERE id = {}; COMMIT",
                        id, other, id + 13));
        client.Query("ROLLBACK");
        if (w < 4)
          client.Query(fmt::format("INSERT INTO a VALUES ({}, {}, 1.5, 'NaN')", id, i % 50));
      }
    });
  auto until = std::chrono::steady_clock::now() + 4s;
  int verified = 0;
  while (std::chrono::steady_clock::now() < until && !HasFailure()) {
    ExpectVerified(verified % 2 == 0 ? "sums" : "copy");
    verified++;
    if (verified % 7 == 0) Shard(1).Must("TRUNCATE a");
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_GE(verified, 4);
  ExpectVerified("sums");
}

TEST_F(Verify, WhatCannotBeVerifiedSaysWhy) {
  MakeTable("a", "id int PRIMARY KEY", 10, "i");
  EXPECT_EQ(client_->Query("SELECT * FROM sluice.verify('a')").sqlstate, "42809");
  EXPECT_EQ(client_->Query("SELECT * FROM sluice.verify('nothing')").sqlstate, "42P01");
  MakeView("m", "SELECT id FROM a");
  client_->Query("CREATE ROLE verify_stranger");
  client_->Must("SET ROLE verify_stranger");
  EXPECT_EQ(client_->Query("SELECT * FROM sluice.verify('m')").sqlstate, "42501");
  client_->Must("RESET ROLE");
  client_->Must("DROP ROLE verify_stranger");
}

}  // namespace
}  // namespace sluice::test
