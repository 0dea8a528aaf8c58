// What only a session has (its catalog, its settings) stays out of parallel workers, by plan.
#include <gtest/gtest.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class Parallel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 2, .settings = {}, .shard_settings = {}});
    for (int shard = 1; shard <= 2; shard++) {
      Client direct(cluster_->ShardUrl(shard));
      direct.Must("CREATE TABLE only_there (x int)");
      direct.Must("CREATE TABLE rows (id int, owner oid, r regclass)");
      direct.Must(
          fmt::format("INSERT INTO rows SELECT g * 2 + {}, 10, CASE WHEN g % 2 = 0 THEN "
                      "'only_there'::regclass ELSE 'pg_class' END "
                      "FROM generate_series(1, 40000) g",
                      shard - 1));
      direct.Must("ANALYZE rows");
    }
    Client client(cluster_->Url());
    client.Must("CALL sluice.attach_table('rows')");
    client.Must("CALL sluice.analyze('rows')");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  static std::string PlanOf(Client* client, const std::string& sql) {
    return client->Must("EXPLAIN (VERBOSE) " + sql).Text(true);
  }

  static Cluster* cluster_;
};
Cluster* Parallel::cluster_ = nullptr;

TEST_F(Parallel, FunctionsOfTheCatalogRunInTheLeader) {
  Client client(cluster_->Url());
  client.Must("SET enable_pushdown_aggregate = off");
  client.Must("SET max_parallel_workers_per_gather = 2");
  EXPECT_NE(PlanOf(&client, "SELECT count(*), sum(id) FROM rows").find("Gather"),
            std::string::npos);
  const char* sql = "SELECT pg_get_userbyid(owner), count(*) FROM rows GROUP BY 1";
  EXPECT_EQ(PlanOf(&client, sql).find("Partial"), std::string::npos);
  EXPECT_EQ(client.Must(sql).Text(true), "[postgres] [80000] \n");
  const char* named = "SELECT owner::regrole::text, count(*) FROM rows GROUP BY 1";
  EXPECT_EQ(PlanOf(&client, named).find("Partial"), std::string::npos);
  EXPECT_EQ(client.Must(named).Text(true), "[postgres] [80000] \n");
}

TEST_F(Parallel, NamesOfAServersObjectsAreTheServersOrRefused) {
  Client client(cluster_->Url());
  // As a server writes them under the search_path that its connections have.
  Answer answer = client.Must("SELECT r, id FROM rows WHERE id < 6");
  EXPECT_EQ(answer.Text(false),
            "[pg_class] [2] \n[pg_class] [3] \n[public.only_there] [4] \n"
            "[public.only_there] [5] \n");
  // Their oids mean nothing here, nor on another server.
  for (const char* sql :
       {"SELECT r FROM rows ORDER BY id + random() LIMIT 1",
        "SELECT r, count(*) FROM rows GROUP BY r", "SELECT r::text || random()::text FROM rows",
        "SELECT DISTINCT r FROM rows"}) {
    Answer refused = client.Query(sql);
    EXPECT_EQ(refused.sqlstate, "0A000") << sql << "\n" << refused.Text(true);
  }
  EXPECT_EQ(client.QueryParams("SELECT r FROM rows WHERE id < 6", {}, true).sqlstate, "0A000");
  EXPECT_EQ(client.Value("SELECT count(*) FROM rows WHERE r IS NOT NULL"), "80000");
}

}  // namespace
}  // namespace sluice::test
