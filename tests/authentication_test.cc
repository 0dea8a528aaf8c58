// Who gets in: pg_hba.conf, passwords, TLS, certificates; and what roles may do.
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/harness.h"

namespace sluice::test {
namespace {

class Authentication : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 1, .settings = {}, .shard_settings = {}});
    MakeCertificates();
    std::ofstream(Data() + "/sluice.conf", std::ios::app)
        << "ssl = on\nssl_ca_file = 'ca.crt'\nlog_min_duration_statement = 0\n";
    SetHba("local all all trust\nhost all all all scram-sha-256\n");
    Client admin(Local());
    admin.Must("CREATE ROLE bob LOGIN PASSWORD 'böb'");
    admin.Must("CREATE ROLE carol LOGIN");
    admin.Must("CREATE ROLE staff NOLOGIN PASSWORD 'x'");
    admin.Must("CREATE ROLE late LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01'");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }

  static std::string Data() { return cluster_->directory() + "/sluice"; }
  static std::string Port() {
    std::string url = cluster_->Url();
    size_t at = url.find("port=") + 5;
    return url.substr(at, url.find(' ', at) - at);
  }
  static std::string Local(const std::string& user = "postgres") {
    return fmt::format("host={} port={} user={} dbname=postgres", cluster_->directory(), Port(),
                       user);
  }
  static std::string Remote(const std::string& user, const std::string& password,
                            const std::string& more = "sslmode=disable") {
    return fmt::format("host=127.0.0.1 port={} user={} password='{}' dbname=postgres {}", Port(),
                       user, password, more);
  }
  // "" or the reason.
  static std::string Refusal(const std::string& conninfo) {
    Client client(conninfo);
    if (client.connected()) return "";
    std::string message = PQerrorMessage(client.raw());
    size_t at = message.find("FATAL:  ");
    return at == std::string::npos ? message
                                   : message.substr(at + 8, message.find('\n', at) - at - 8);
  }

  static void Shell(const std::string& command) {
    ASSERT_EQ(cluster_->RunAsOwner({"/bin/sh", "-c", command}), 0) << command;
  }
  static void MakeCertificates() {
    Shell("cd '" + Data() +
          "' && exec 2>/dev/null && "
          "openssl req -new -x509 -days 30 -nodes -subj /CN=test-ca -keyout ca.key -out ca.crt && "
          "for who in server:localhost client:bob; do n=${who%%:*}; "
          "openssl req -new -nodes -subj /CN=${who#*:} -keyout $n.key -out $n.csr && "
          "openssl x509 -req -days 30 -in $n.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out "
          "$n.crt "
          "|| exit 1; done; chmod 600 *.key");
  }
  static void Reload() {
    ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "reload", "-D", Data()}), 0);
  }
  // Waits until the postmaster has read it.
  static void SetHba(const std::string& text) {
    { std::ofstream(Data() + "/pg_hba.conf") << text; }
    static int round = 0;
    std::string mark = fmt::format("mark{}", ++round);
    std::ofstream(Data() + "/sluice.conf", std::ios::app)
        << "database_names = 'postgres," << mark << "'\n"
        << std::flush;
    Reload();
    ASSERT_TRUE(Eventually(
        [&] { return Refusal(Local() + " dbname=" + mark).find(mark) == std::string::npos; }, 10));
  }

  static Cluster* cluster_;
};
Cluster* Authentication::cluster_ = nullptr;

TEST_F(Authentication, Passwords) {
  SetHba("local all all trust\nhost all all all scram-sha-256\n");
  EXPECT_EQ(Refusal(Remote("bob", "böb")), "");
  EXPECT_EQ(Refusal(Remote("bob", "bob")), "password authentication failed for user \"bob\"");
  // Nothing tells a user without a password, or one that does not exist, from a wrong password.
  for (const char* user : {"carol", "nobody", "late"})
    EXPECT_EQ(Refusal(Remote(user, "x")),
              fmt::format("password authentication failed for user \"{}\"", user));
  EXPECT_EQ(Refusal(Remote("staff", "x")), "role \"staff\" is not permitted to log in");
  EXPECT_EQ(Refusal(Remote("bob", "böb") + " dbname=other"), "database \"other\" does not exist");
  Client admin(Local());
  admin.Must("ALTER ROLE bob PASSWORD 'new'");
  EXPECT_EQ(Refusal(Remote("bob", "böb")), "password authentication failed for user \"bob\"");
  EXPECT_EQ(Refusal(Remote("bob", "new")), "");
  // As psql's \password does it: the server never sees the password.
  char* verifier = PQencryptPasswordConn(admin.raw(), "böb", "bob", "scram-sha-256");
  ASSERT_NE(verifier, nullptr);
  admin.Must(fmt::format("ALTER USER bob PASSWORD '{}'", verifier));
  PQfreemem(verifier);
  EXPECT_EQ(Refusal(Remote("bob", "böb")), "");
}

TEST_F(Authentication, HbaDecides) {
  SetHba(
      "local all all trust\n"
      "host all carol 127.0.0.1/32 reject\n"
      "host all bob 10.0.0.0/8 trust\n"
      "hostssl all bob all trust\n");
  EXPECT_EQ(Refusal(Remote("carol", "")),
            "pg_hba.conf rejects connection for host \"127.0.0.1\", user \"carol\", database "
            "\"postgres\", no encryption");
  EXPECT_EQ(Refusal(Remote("bob", "")),
            "no pg_hba.conf entry for host \"127.0.0.1\", user \"bob\", database \"postgres\", no "
            "encryption");
  EXPECT_EQ(Refusal(Remote("bob", "", "sslmode=require")), "");
  EXPECT_EQ(Refusal(Local("nobody")), "role \"nobody\" does not exist");
}

TEST_F(Authentication, ABadFileChangesNothing) {
  SetHba("local all all trust\nhost all all all trust\n");
  { std::ofstream(Data() + "/pg_hba.conf") << "local all all md5\n"; }
  Reload();
  EXPECT_TRUE(Eventually(
      [&] {
        return ReadFile(Data() + "/../sluice/sluice.log")
                   .find("authentication method \"md5\" is not supported") != std::string::npos;
      },
      10));
  EXPECT_EQ(Refusal(Remote("bob", "")), "");
  EXPECT_EQ(Refusal(Local()), "");
}

TEST_F(Authentication, Tls) {
  SetHba("local all all trust\nhostssl all all all scram-sha-256\n");
  std::string url = Remote("bob", "böb",
                           fmt::format("sslmode=verify-ca sslrootcert={}/ca.crt "
                                       "channel_binding=require",
                                       Data()));
  Client client(url);
  ASSERT_TRUE(client.connected()) << PQerrorMessage(client.raw());
  EXPECT_STREQ(PQsslAttribute(client.raw(), "library"), "OpenSSL");
  // More than the sockets and many records hold, in both directions.
  EXPECT_EQ(client.Must("SELECT i, repeat('x', 100) FROM generate_series(1, 100000) i").rows.size(),
            100000u);
  std::string large(3'000'000, 'y');
  EXPECT_EQ(client.QueryParams("SELECT length($1::text)", {large}, false).rows[0][0], "3000000");
  EXPECT_EQ(Refusal(Remote("bob", "wrong", "sslmode=require")),
            "password authentication failed for user \"bob\"");
  EXPECT_NE(Refusal(Remote("bob", "böb")), "");
  // A cancel request comes over a connection of its own.
  PGcancel* cancel = PQgetCancel(client.raw());
  ASSERT_EQ(PQsendQuery(client.raw(), "SELECT pg_sleep(30)"), 1);
  EXPECT_TRUE(Eventually(
      [&] {
        char error[256];
        PQcancel(cancel, error, sizeof error);
        PQconsumeInput(client.raw());
        return PQisBusy(client.raw()) == 0;
      },
      10));
  PQfreeCancel(cancel);
}

TEST_F(Authentication, ClientCertificates) {
  SetHba("local all all trust\nhostssl all all all cert\n");
  std::string with =
      fmt::format("sslmode=require sslcert={0}/client.crt sslkey={0}/client.key", Data());
  // libpq wants the key for itself alone.
  if (geteuid() == 0) {
    chown((Data() + "/client.key").c_str(), 0, 0);
  }
  EXPECT_EQ(Refusal(Remote("bob", "", with)), "");
  EXPECT_EQ(Refusal(Remote("carol", "", with)),
            "certificate authentication failed for user \"carol\"");
  EXPECT_EQ(Refusal(Remote("bob", "", "sslmode=require sslcert=/nonexistent")),
            "connection requires a valid client certificate");
}

TEST_F(Authentication, PasswordsAreNotLoggedOrShown) {
  SetHba("local all all trust\n");
  Client admin(Local());
  admin.Must("CREATE ROLE dave LOGIN PASSWORD 'sEcReT-1'");
  admin.Must("ALTER ROLE dave WITH PASSWORD $$sEcReT-2$$");
  admin.Query("ALTER ROLE nobody PASSWORD E'sEcReT-\\063'");
  admin.Query("ALTER ROLE nobody PASSWORD 'sEcReT-4");  // a syntax error
  admin.Must("CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1')");
  admin.Must("CREATE USER MAPPING FOR dave SERVER s OPTIONS (user 'd', password 'sEcReT-5')");
  EXPECT_EQ(
      admin.Value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sEcReT%' AND pid <> "
                  "pg_backend_pid()"),
      "0");
  Client other(Local());
  EXPECT_EQ(
      other.Value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sEcR' || 'eT-%' AND "
                  "pid <> pg_backend_pid()"),
      "0");
  std::string log = ReadFile(Data() + "/sluice.log");
  size_t leak = log.find("sEcReT-");
  EXPECT_EQ(leak, std::string::npos) << log.substr(log.rfind('\n', leak) + 1, 300);
  admin.Must("DROP SERVER s CASCADE");
  admin.Must("DROP ROLE dave");
}

TEST_F(Authentication, Privileges) {
  SetHba("local all all trust\n");
  Client admin(Local());
  Client shard(cluster_->ShardUrl(1));
  shard.Must("CREATE TABLE secret (a int, b text); INSERT INTO secret VALUES (1, 'x')");
  admin.Must("CREATE FOREIGN TABLE secret (a int, b text) SERVER shard1");
  admin.Must("CREATE VIEW window_on_it AS SELECT a FROM secret");
  Client carol(Local("carol"));
  auto state = [](Client& client, const std::string& sql) { return client.Query(sql).sqlstate; };
  EXPECT_EQ(carol.Query("SELECT * FROM secret").message,
            "permission denied for foreign table secret");
  EXPECT_EQ(state(carol, "SELECT (SELECT max(a) FROM secret)"), "42501");
  EXPECT_EQ(state(carol, "SELECT 1 WHERE EXISTS (SELECT FROM secret)"), "42501");
  EXPECT_EQ(state(carol, "WITH s AS (SELECT * FROM secret) SELECT 1"), "42501");
  EXPECT_EQ(state(carol, "SELECT 1 UNION SELECT a FROM secret"), "42501");
  EXPECT_EQ(state(carol, "COPY secret TO STDOUT"), "42501");
  EXPECT_EQ(state(carol, "DROP FOREIGN TABLE secret"), "42501");
  EXPECT_EQ(state(carol, "CREATE VIEW mine AS SELECT 1"), "42501");  // no CREATE on public
  EXPECT_EQ(state(carol, "CREATE ROLE x"), "42501");
  EXPECT_EQ(state(carol, "SET ROLE postgres"), "42501");
  admin.Must("GRANT SELECT ON window_on_it TO carol");
  EXPECT_EQ(carol.Value("SELECT a FROM window_on_it"), "1");
  EXPECT_EQ(state(carol, "SELECT window_on_it.a FROM window_on_it, secret"), "42501");
  admin.Must("REVOKE SELECT ON window_on_it FROM carol");
  EXPECT_EQ(state(carol, "SELECT a FROM window_on_it"), "42501");
  EXPECT_EQ(carol.Value("SELECT has_table_privilege('secret', 'select')"), "f");
  EXPECT_EQ(carol.Value("SELECT has_table_privilege('postgres', 'secret', 'SELECT, DELETE')"), "t");
  EXPECT_EQ(carol.Value("SELECT has_schema_privilege('public', 'usage')"), "t");
  EXPECT_EQ(carol.Value("SELECT has_schema_privilege('public', 'create')"), "f");
  EXPECT_EQ(carol.Value("SELECT pg_has_role('postgres', 'member')"), "f");
  EXPECT_EQ(carol.Value("SELECT has_table_privilege('pg_class', 'select')"), "t");
  EXPECT_EQ(carol.Value("SELECT has_table_privilege(99999999::oid, 'select')"), "NULL");
  EXPECT_EQ(state(carol, "SELECT has_table_privilege('secret', 'nonsense')"), "22023");
  // Through a group, and only as long as it is inherited.
  admin.Must("GRANT SELECT ON secret TO staff");
  admin.Must("GRANT staff TO carol");
  EXPECT_EQ(carol.Value("SELECT b FROM secret"), "x");
  admin.Must("ALTER ROLE carol NOINHERIT");
  EXPECT_EQ(state(carol, "SELECT b FROM secret"), "42501");
  carol.Must("SET ROLE staff");
  EXPECT_EQ(carol.Value("SELECT current_user"), "staff");
  EXPECT_EQ(carol.Value("SELECT session_user"), "carol");
  EXPECT_EQ(carol.Value("SELECT b FROM secret"), "x");
  carol.Must("RESET ROLE");
  EXPECT_EQ(state(carol, "SELECT b FROM secret"), "42501");
  admin.Must("ALTER ROLE carol INHERIT");
  EXPECT_EQ(state(admin, "DROP ROLE staff"), "2BP01");
  EXPECT_EQ(state(admin, "GRANT carol TO staff"), "0LP01");
  admin.Must("GRANT ALL ON secret TO PUBLIC");
  admin.Must("REVOKE ALL ON secret FROM staff");
  admin.Must("DROP ROLE staff");
  EXPECT_EQ(carol.Value("SELECT b FROM secret"), "x");
  admin.Must("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC");
  EXPECT_EQ(state(carol, "SELECT b FROM secret"), "42501");
  admin.Must("GRANT CREATE ON SCHEMA public TO carol");
  carol.Must("CREATE VIEW mine AS SELECT 1 AS one");
  EXPECT_EQ(carol.Value("SELECT one FROM mine"), "1");
  EXPECT_EQ(state(admin, "DROP ROLE carol"), "2BP01");
  carol.Must("DROP VIEW mine");
}

// A role is taken on by SET only, whatever the way to say it.
TEST_F(Authentication, NoWayAroundSetRole) {
  Client bob(Local("bob"));
  for (const char* sql : {"SET ROLE postgres", "SET role = 'postgres'",
                          "SELECT set_config('role', 'postgres', false)",
                          "SELECT set_config('ROLE', 'postgres', true)",
                          "SELECT set_config(name, 'postgres', false) FROM pg_settings "
                          "WHERE name = 'role'",
                          "SET SESSION AUTHORIZATION postgres",
                          "SELECT set_config('session_authorization', 'postgres', false)"}) {
    EXPECT_EQ(bob.Query(sql).sqlstate, "42501") << sql;
    EXPECT_EQ(bob.Must("SELECT current_user, session_user").Text(true), "[bob] [bob] \n") << sql;
  }
  for (const char* option : {"role", "session_authorization"}) {
    std::string conninfo = fmt::format("{} options='-c {}=postgres'", Local("bob"), option);
    EXPECT_NE(Refusal(conninfo), "") << option;
  }
  Client admin(fmt::format("{} options='-c role=bob'", Local()));
  EXPECT_EQ(admin.Must("SELECT current_user, session_user").Text(true), "[bob] [postgres] \n");
}

TEST_F(Authentication, SessionsOfOthers) {
  Client admin(Local()), bob(Local("bob")), carol(Local("carol")), carol2(Local("carol"));
  auto pid = [](Client& of) { return std::to_string(PQbackendPID(of.raw())); };
  admin.Must("SELECT 'secret'");
  std::string seen = "SELECT query, state FROM pg_stat_activity WHERE pid = ";
  EXPECT_EQ(bob.Must(seen + pid(admin)).Text(true), "[<insufficient privilege>] NULL \n");
  EXPECT_EQ(admin.Must(seen + pid(admin)).Text(true), "[" + seen + pid(admin) + "] [active] \n");
  Answer refused = bob.Query("SELECT pg_terminate_backend(" + pid(admin) + ")");
  EXPECT_EQ(refused.sqlstate, "42501");
  EXPECT_EQ(refused.message, "must be a superuser to terminate superuser process");
  refused = bob.Query("SELECT pg_cancel_backend(" + pid(carol) + ")");
  EXPECT_EQ(refused.sqlstate, "42501");
  EXPECT_EQ(refused.message,
            "must be a member of the role whose query is being canceled or member of "
            "pg_signal_backend");
  EXPECT_EQ(carol2.Must("SELECT pg_terminate_backend(" + pid(carol) + ")").Text(true), "[t] \n");
  EXPECT_EQ(admin.Must("SELECT pg_terminate_backend(" + pid(carol2) + ")").Text(true), "[t] \n");
}

}  // namespace
}  // namespace sluice::test
