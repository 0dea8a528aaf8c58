// The client protocol over a raw socket: what drivers rely on, and what broken or hostile clients
// send.
#include <gtest/gtest.h>
#include <thread>

#include "tests/harness.h"
#include "tests/raw_client.h"

namespace sluice::test {
namespace {

class Protocol : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(
        Cluster::Options{.shards = 1, .settings = {"max_connections = 12"}, .shard_settings = {}});
    Client shard(cluster_->ShardUrl(1));
    shard.Must("CREATE TABLE big (id int PRIMARY KEY, pad text)");
    shard.Must("INSERT INTO big SELECT g, repeat('x', 200) FROM generate_series(1, 200000) g");
    Client(cluster_->Url()).Must("CALL sluice.attach_table('big')");
    std::string url = cluster_->Url();
    size_t at = url.find("port=");
    port_ =
        std::stoi(at != std::string::npos ? url.substr(at + 5) : url.substr(url.rfind(':') + 1));
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void ExpectServes() {
    EXPECT_TRUE(
        Eventually([] { return Client(cluster_->Url()).Query("SELECT 1").sqlstate.empty(); }, 10));
  }

  static Cluster* cluster_;
  static int port_;
};
Cluster* Protocol::cluster_ = nullptr;
int Protocol::port_ = 0;

std::string Parse(std::string_view name, std::string_view sql, std::vector<uint32_t> types = {}) {
  Body body;
  body.CString(name).CString(sql).Int<int16_t>(static_cast<int16_t>(types.size()));
  for (uint32_t type : types) body.Int(type);
  return Message('P', body);
}
// Text parameters, one result format for all.
std::string Bind(std::string_view portal, std::string_view statement,
                 std::vector<std::string> params = {}, int16_t format = 0) {
  Body body;
  body.CString(portal).CString(statement).Int<int16_t>(0);
  body.Int<int16_t>(static_cast<int16_t>(params.size()));
  for (const std::string& param : params) body.Value(param);
  body.Int<int16_t>(1).Int<int16_t>(format);
  return Message('B', body);
}
std::string Execute(std::string_view portal = "", int32_t rows_max = 0) {
  return Message('E', Body().CString(portal).Int(rows_max));
}
std::string Describe(char kind, std::string_view name = "") {
  return Message('D', Body().Int<char>(kind).CString(name));
}
const std::string kSync = Message('S');
const std::string kFlush = Message('H');

// --- start-up

TEST_F(Protocol, EncryptionRequestsAreAnsweredWithNoAndTheSessionGoesOn) {
  RawClient client(port_);
  client.SendStartup(Body().Int<int32_t>(80877104));
  EXPECT_EQ(client.Bytes(1), "N");
  client.SendStartup(Body().Int<int32_t>(80877103));
  EXPECT_EQ(client.Bytes(1), "N");
  EXPECT_EQ(client.Start().back().type, 'Z');
  EXPECT_EQ(Types(client.Query("SELECT 1")), "TDCZ");
}

TEST_F(Protocol, StartUpTellsTheParametersThatDriversRead) {
  RawClient client(port_);
  std::map<std::string, std::string> parameters;
  bool key = false;
  auto messages = client.Start();
  EXPECT_EQ(messages[0].type, 'R');
  for (const Received& message : messages) {
    if (message.type == 'K') key = message.body.size() == 8;
    if (message.type != 'S') continue;
    std::string name = message.body.c_str();
    parameters[name] = message.body.c_str() + name.size() + 1;
  }
  EXPECT_TRUE(key);
  EXPECT_EQ(messages.back().body, "I");
  EXPECT_EQ(parameters["server_version"].substr(0, 3), "15.");
  EXPECT_EQ(parameters["client_encoding"], "UTF8");
  EXPECT_EQ(parameters["server_encoding"], "UTF8");
  EXPECT_EQ(parameters["DateStyle"], "ISO, MDY");
  EXPECT_EQ(parameters["integer_datetimes"], "on");
  EXPECT_EQ(parameters["standard_conforming_strings"], "on");
  EXPECT_EQ(parameters["session_authorization"], "postgres");
  for (const char* name : {"TimeZone", "IntervalStyle", "is_superuser", "application_name",
                           "in_hot_standby", "default_transaction_read_only"})
    EXPECT_EQ(parameters.count(name), 1u) << name;
}

TEST_F(Protocol, StartUpOptionsSetSettings) {
  RawClient client(port_);
  client.SendStartup(RawClient::StartupBody()
                         .CString("options")
                         .CString("-c work_mem=8MB --extra-float-digits=2")
                         .CString("application_name")
                         .CString("a test")
                         .Raw(std::string(1, '\0')));
  ASSERT_EQ(client.UntilReady().back().type, 'Z');
  auto messages = client.Query("SHOW work_mem");
  EXPECT_NE(messages[1].body.find("8MB"), std::string::npos);
  EXPECT_NE(client.Query("SHOW application_name")[1].body.find("a test"), std::string::npos);
  EXPECT_NE(client.Query("SHOW extra_float_digits")[1].body.find("2"), std::string::npos);
}

TEST_F(Protocol, BadStartUpOptionsEndTheSession) {
  RawClient client(port_);
  client.SendStartup(
      RawClient::StartupBody().CString("no_such_setting").CString("1").Raw(std::string(1, '\0')));
  auto messages = client.UntilReady();
  EXPECT_EQ(SqlStateOf(messages), "42704");
  EXPECT_EQ(Field(messages[0], 'S'), "FATAL");
}

TEST_F(Protocol, ANewerMinorVersionIsNegotiatedDown) {
  RawClient client(port_);
  client.SendStartup(RawClient::StartupBody(196610)
                         .CString("_pq_.unknown")
                         .CString("x")
                         .Raw(std::string(1, '\0')));
  auto messages = client.UntilReady();
  EXPECT_EQ(messages[0].type, 'v');
  EXPECT_EQ(LoadBig<int32_t>(messages[0].body.data()), 196608);
  EXPECT_NE(messages[0].body.find("_pq_.unknown"), std::string::npos);
  EXPECT_EQ(messages.back().type, 'Z');
}

TEST_F(Protocol, ProtocolTwoAndAMissingUserAreRefused) {
  RawClient old(port_);
  old.SendStartup(RawClient::StartupBody(131072).Raw(std::string(1, '\0')));
  EXPECT_EQ(SqlStateOf(old.UntilReady()), "0A000");
  RawClient nobody(port_);
  nobody.SendStartup(Body().Int<int32_t>(196608).Raw(std::string(1, '\0')));
  EXPECT_EQ(SqlStateOf(nobody.UntilReady()), "28000");
}

TEST_F(Protocol, BytesThatAreNoStartUpPacketEndTheConnectionOnly) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\0\0\0\1", 4),
        std::string("\0\0\0\x9", 4) + std::string("\0\3\0\0\0", 5),
        std::string("\0\0\0\x0e", 4) + std::string("\0\3\0\0user\0p", 10),
        std::string(20000, '\xff')}) {
    RawClient client(port_);
    client.Send(bytes);
    client.HalfClose();
    EXPECT_EQ(client.UntilReady().back().type, 0);
  }
  ExpectServes();
}

// --- framing

TEST_F(Protocol, AnUnknownMessageTypeEndsTheSession) {
  RawClient client(port_);
  client.Start();
  client.Send("\x01");
  auto messages = client.UntilReady();
  EXPECT_EQ(SqlStateOf(messages), "08P01");
  EXPECT_EQ(Field(messages[0], 'S'), "FATAL");
  EXPECT_EQ(messages.back().type, 0);
}

TEST_F(Protocol, ALengthThatCannotBeEndsTheSession) {
  for (const std::string& bytes :
       {std::string("Q\0\0\0\3", 5), std::string("Q\x7f\xff\xff\xff", 5),
        std::string("S\0\1\0\0", 5), std::string("Q\xff\xff\xff\xff", 5)}) {
    RawClient client(port_);
    client.Start();
    client.Send(bytes);
    EXPECT_EQ(SqlStateOf(client.UntilReady()), "08P01");
  }
  ExpectServes();
}

TEST_F(Protocol, MessagesMayComeByteByByte) {
  RawClient client(port_);
  client.Start();
  for (char c : Message('Q', Body().CString("SELECT 'slow'"))) {
    client.Send(std::string(1, c));
    usleep(500);
  }
  EXPECT_EQ(Types(client.UntilReady()), "TDCZ");
}

TEST_F(Protocol, HalfAMessageAndThenTheEndFreesTheBackend) {
  Client watcher(cluster_->Url());
  std::string before = watcher.Value("SELECT count(*) FROM pg_stat_activity");
  {
    RawClient client(port_);
    client.Start();
    client.Send(Message('Q', Body().CString("SELECT 1")).substr(0, 7));
    usleep(50'000);
  }
  EXPECT_TRUE(Eventually(
      [&] { return watcher.Value("SELECT count(*) FROM pg_stat_activity") == before; }, 5));
}

TEST_F(Protocol, ABodyThatEndsEarlyIsAnErrorAndTheSessionGoesOn) {
  RawClient client(port_);
  client.Start();
  client.Send(Message('Q', Body().Raw("SELECT 1")));  // no terminating zero
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "08P01");
  client.Send(Message('B', Body().CString("").Raw("x")) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "08P01");
  EXPECT_EQ(Types(client.Query("SELECT 1")), "TDCZ");
}

// --- simple queries

TEST_F(Protocol, SeveralStatementsInOneStringStopAtAnError) {
  RawClient client(port_);
  client.Start();
  EXPECT_EQ(Types(client.Query("SELECT 1; SELECT 2; SELECT nope; SELECT 3")), "TDCTDCEZ");
  EXPECT_EQ(Types(client.Query("")), "IZ");
  EXPECT_EQ(Types(client.Query(" ; ; -- nothing")), "IZ");
}

TEST_F(Protocol, AStringOfStatementsIsOneTransaction) {
  RawClient client(port_);
  client.Start();
  client.Query("SET application_name = 'before'");
  EXPECT_EQ(Types(client.Query("SET application_name = 'within'; SELECT nope")), "CEZ");
  EXPECT_NE(client.Query("SHOW application_name")[1].body.find("before"), std::string::npos);
}

TEST_F(Protocol, AFailedBlockRefusesEverythingButItsEnd) {
  RawClient client(port_);
  client.Start();
  EXPECT_EQ(client.Query("BEGIN").back().body, "T");
  EXPECT_EQ(client.Query("SELECT nope").back().body, "E");
  EXPECT_EQ(SqlStateOf(client.Query("SELECT 1")), "25P02");
  auto end = client.Query("COMMIT");
  EXPECT_EQ(end[0].body, std::string("ROLLBACK\0", 9));
  EXPECT_EQ(end.back().body, "I");
}

TEST_F(Protocol, ChangedParametersAreReported) {
  RawClient client(port_);
  client.Start();
  EXPECT_EQ(Types(client.Query("SET TimeZone = 'Europe/Berlin'")), "CSZ");
  EXPECT_EQ(Types(client.Query("SET work_mem = '8MB'")), "CZ");
  EXPECT_EQ(Types(client.Query("BEGIN; SET LOCAL TimeZone = 'UTC'; COMMIT")), "CCCZ");
}

TEST_F(Protocol, ErrorsCarryThePositionInCharacters) {
  RawClient client(port_);
  client.Start();
  auto messages = client.Query("SELECT 'äöü€', nope");
  EXPECT_EQ(Field(messages[0], 'P'), "16");
  EXPECT_EQ(Field(messages[0], 'C'), "42703");
  messages = client.Query("SELECT 1; SELECT 'ä' frum x");
  EXPECT_EQ(Field(messages[0], 'C'), "42601");
}

// --- extended protocol

TEST_F(Protocol, PipelinedStatementsAreAnsweredInOrder) {
  RawClient client(port_);
  client.Start();
  std::string batch;
  for (int i = 0; i < 50; i++)
    batch += Parse("", "SELECT $1::int4") + Bind("", "", {std::to_string(i)}) + Execute();
  client.Send(batch + kSync);
  auto messages = client.UntilReady();
  std::string expected;
  for (int i = 0; i < 50; i++) expected += "12DC";
  EXPECT_EQ(Types(messages), expected + "Z");
  EXPECT_NE(messages[49 * 4 + 2].body.find("49"), std::string::npos);
}

TEST_F(Protocol, AfterAnErrorEverythingIsSkippedUpToSync) {
  RawClient client(port_);
  client.Start();
  client.Send(Parse("", "SELECT 1") + Bind("", "") + Execute() + Parse("", "SELECT nope") +
              Bind("", "") + Execute() + Message('Q', Body().CString("SELECT 1")) + kSync +
              Parse("", "SELECT 2") + Bind("", "") + Execute() + kSync);
  EXPECT_EQ(Types(client.UntilReady()), "12DCEZ");
  EXPECT_EQ(Types(client.UntilReady()), "12DCZ");
}

TEST_F(Protocol, FlushSendsWhatIsThereWithoutSync) {
  RawClient client(port_);
  client.Start();
  client.Send(Parse("", "SELECT 1") + Describe('S') + kFlush);
  EXPECT_EQ(client.Receive().type, '1');
  EXPECT_EQ(client.Receive().type, 't');
  EXPECT_EQ(client.Receive().type, 'T');
  client.Send(Bind("", "") + Execute() + kFlush);
  for (char type : {'2', 'D', 'C'}) EXPECT_EQ(client.Receive().type, type);
  client.Send(kSync);
  EXPECT_EQ(client.Receive().type, 'Z');
}

TEST_F(Protocol, APortalIsSuspendedAtTheRowLimitAndGoesOn) {
  for (const char* sql :
       {"SELECT g FROM generate_series(1, 10) g", "SELECT id FROM big WHERE id <= 10",
        "SELECT id FROM big WHERE id <= 10 ORDER BY id DESC"}) {
    SCOPED_TRACE(sql);
    RawClient client(port_);
    client.Start();
    client.Send(Parse("", sql) + Bind("", "") + Execute("", 4) + Execute("", 4) + Execute("", 4) +
                Execute("", 4) + kSync);
    EXPECT_EQ(Types(client.UntilReady()), "12DDDDsDDDDsDDCCZ");
    // Outside a transaction block the portal is gone with Sync.
    client.Send(Execute("", 4) + kSync);
    EXPECT_EQ(SqlStateOf(client.UntilReady()), "34000");
  }
}

TEST_F(Protocol, ExactlyTheLastRowsSuspendToo) {
  RawClient client(port_);
  client.Start();
  client.Send(Parse("", "SELECT g FROM generate_series(1, 2) g") + Bind("", "") + Execute("", 2) +
              Execute("", 2) + kSync);
  auto messages = client.UntilReady();
  EXPECT_EQ(Types(messages), "12DDsCZ");
  EXPECT_EQ(messages[5].body, std::string("SELECT 0\0", 9));
}

TEST_F(Protocol, BinaryParametersAndResults) {
  RawClient client(port_);
  client.Start();
  Body bind;
  bind.CString("").CString("").Int<int16_t>(1).Int<int16_t>(1).Int<int16_t>(2);
  bind.Int<int32_t>(8).Int<int64_t>(-5).Int<int32_t>(-1);
  bind.Int<int16_t>(1).Int<int16_t>(1);
  client.Send(Parse("", "SELECT $1::int8, $2::text") + Message('B', bind) + Execute() + kSync);
  auto messages = client.UntilReady();
  ASSERT_EQ(Types(messages), "12DCZ");
  EXPECT_EQ(messages[2].body,
            Body().Int<int16_t>(2).Int<int32_t>(8).Int<int64_t>(-5).Int<int32_t>(-1).bytes());
  Body bad;
  bad.CString("").CString("").Int<int16_t>(1).Int<int16_t>(1).Int<int16_t>(2);
  bad.Int<int32_t>(3).Raw("abc").Int<int32_t>(-1).Int<int16_t>(0);
  client.Send(Message('B', bad) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "08P01");  // too short, says Postgres
  Body long_one;
  long_one.CString("").CString("").Int<int16_t>(1).Int<int16_t>(1).Int<int16_t>(2);
  long_one.Int<int32_t>(9).Raw("abcdefghi").Int<int32_t>(-1).Int<int16_t>(0);
  client.Send(Message('B', long_one) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "22P03");
}

// A program may write what a server would not: it is brought into the server's form, or refused.
TEST_F(Protocol, BinaryParametersAreBroughtIntoTheirForm) {
  RawClient client(port_);
  client.Start();
  auto ask = [&](const std::string& sql, const std::string& value) {
    Body bind;
    bind.CString("").CString("").Int<int16_t>(1).Int<int16_t>(1).Int<int16_t>(1);
    bind.Int<int32_t>(static_cast<int32_t>(value.size())).Raw(value).Int<int16_t>(0);
    client.Send(Parse("", sql) + Message('B', bind) + Execute() + kSync);
    return client.UntilReady();
  };
  auto messages = ask("SELECT $1::jsonb", "\x01{\"b\":1,\"a\":2,\"b\":3}");
  ASSERT_EQ(Types(messages), "12DCZ");
  std::string text = R"({"a": 2, "b": 3})";
  EXPECT_EQ(
      messages[2].body,
      Body().Int<int16_t>(1).Int<int32_t>(static_cast<int32_t>(text.size())).Raw(text).bytes());
  EXPECT_EQ(SqlStateOf(ask("SELECT $1::jsonb", "\x01{\"b\"")), "22P02");
  EXPECT_EQ(SqlStateOf(ask("SELECT $1::json", "{")), "22P02");
  std::string of_text = Body().Int<int32_t>(0).Int<int32_t>(0).Int<int32_t>(25).bytes();
  EXPECT_EQ(SqlStateOf(ask("SELECT $1::int[]", of_text)), "42804");
}

TEST_F(Protocol, BadUtf8AnywhereInAStatementIsRefused) {
  RawClient client(port_);
  client.Start();
  for (const char* sql : {"SELECT 1 -- \xff", "SELECT 1 AS \"\xc3\"", "SELECT '\xed\xa0\x80'"}) {
    client.Send(Message('Q', Body().CString(sql)));
    EXPECT_EQ(SqlStateOf(client.UntilReady()), "22021") << sql;
  }
}

TEST_F(Protocol, DescribeTellsParameterAndColumnTypes) {
  RawClient client(port_);
  client.Start();
  client.Send(Parse("s", "SELECT id, pad FROM big WHERE id = $1") + Describe('S', "s") + kSync);
  auto messages = client.UntilReady();
  ASSERT_EQ(Types(messages), "1tTZ");
  EXPECT_EQ(messages[1].body, Body().Int<int16_t>(1).Int<int32_t>(23).bytes());
  // Each is a column of a relation, and by which number.
  auto table =
      static_cast<int32_t>(std::stol(Client(cluster_->Url()).Value("SELECT 'big'::regclass::oid")));
  Body expected;
  expected.Int<int16_t>(2);
  expected.CString("id")
      .Int<int32_t>(table)
      .Int<int16_t>(1)
      .Int<int32_t>(23)
      .Int<int16_t>(4)
      .Int<int32_t>(-1)
      .Int<int16_t>(0);
  expected.CString("pad")
      .Int<int32_t>(table)
      .Int<int16_t>(2)
      .Int<int32_t>(25)
      .Int<int16_t>(-1)
      .Int<int32_t>(-1)
      .Int<int16_t>(0);
  EXPECT_EQ(messages[2].body, expected.bytes());
  client.Send(Parse("t", "SET work_mem = 1000") + Describe('S', "t") + kSync);
  EXPECT_EQ(Types(client.UntilReady()), "1tnZ");
}

TEST_F(Protocol, WrongCountsInBindAreProtocolViolations) {
  RawClient client(port_);
  client.Start();
  client.Send(Parse("s", "SELECT $1::int4, 2") + kSync);
  client.UntilReady();
  client.Send(Bind("", "s") + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "08P01");  // one parameter missing
  Body formats;
  formats.CString("").CString("s").Int<int16_t>(0).Int<int16_t>(1).Value("1");
  formats.Int<int16_t>(3).Int<int16_t>(0).Int<int16_t>(0).Int<int16_t>(0);
  client.Send(Message('B', formats) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "08P01");
  client.Send(Bind("", "s", {"1"}, 7) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "22023");
  client.Send(Bind("", "s", {"one"}) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "22P02");
}

TEST_F(Protocol, TwoResultFormatsForSeventeenColumnsAreRefused) {
  RawClient client(port_);
  client.Start();
  std::string columns = "1";
  for (int i = 2; i <= 17; i++) columns += ", " + std::to_string(i);
  client.Send(Parse("", "SELECT " + columns) +
              Message('B', Body()
                               .CString("")
                               .CString("")
                               .Int<int16_t>(0)
                               .Int<int16_t>(0)
                               .Int<int16_t>(2)
                               .Int<int16_t>(0)
                               .Int<int16_t>(1)) +
              kSync);
  auto messages = client.UntilReady();
  EXPECT_EQ(Types(messages), "1EZ");
  EXPECT_EQ(Field(messages[1], 'C'), "08P01");
  EXPECT_EQ(Field(messages[1], 'M'), "bind message has 2 result formats but query has 17 columns");
}

TEST_F(Protocol, NamesOfStatementsAndPortalsAreChecked) {
  RawClient client(port_);
  client.Start();
  client.Send(Parse("s", "SELECT 1") + Parse("s", "SELECT 2") + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "42P05");
  client.Send(Bind("", "none") + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "26000");
  client.Send(Execute("none") + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "34000");
  client.Send(Bind("p", "s") + Bind("p", "s") + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "42P03");
  client.Send(Message('C', Body().Int<char>('S').CString("s")) +
              Message('C', Body().Int<char>('S').CString("s")) + kSync);
  EXPECT_EQ(Types(client.UntilReady()), "33Z");
  client.Send(Parse("", "SELECT 1; SELECT 2") + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "42601");
}

TEST_F(Protocol, ANamedPortalLivesThroughSyncInsideABlock) {
  RawClient client(port_);
  client.Start();
  client.Query("BEGIN");
  client.Send(Parse("s", "SELECT id FROM big ORDER BY id LIMIT 5") + Bind("p", "s") +
              Execute("p", 2) + kSync);
  EXPECT_EQ(Types(client.UntilReady()), "12DDsZ");
  client.Send(Execute("p", 2) + kSync);
  EXPECT_EQ(Types(client.UntilReady()), "DDsZ");
  EXPECT_EQ(Types(client.Query("FETCH ALL FROM p")), "TDCZ");
  client.Query("COMMIT");
  client.Send(Execute("p", 2) + kSync);
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "34000");
}

TEST_F(Protocol, CommandsRunThroughTheExtendedProtocolToo) {
  RawClient client(port_);
  client.Start();
  auto run = [&](const char* sql) {
    client.Send(Parse("", sql) + Bind("", "") + Describe('P') + Execute() + kSync);
    return client.UntilReady();
  };
  EXPECT_EQ(Types(run("BEGIN")), "12nCZ");
  EXPECT_EQ(Types(run("SHOW work_mem")), "12TDCZ");
  EXPECT_EQ(Types(run("DECLARE c CURSOR FOR SELECT id FROM big ORDER BY id")), "12nCZ");
  EXPECT_EQ(Types(run("FETCH 3 FROM c")), "12TDDDCZ");
  EXPECT_EQ(run("COMMIT").back().body, "I");
  EXPECT_EQ(Types(run("")), "12nIZ");
}

// --- COPY

TEST_F(Protocol, CopyOutInItsThreeFormats) {
  RawClient client(port_);
  client.Start();
  auto text = client.Query("COPY (SELECT 1, NULL::text, E'a\\tb\\\\') TO STDOUT");
  ASSERT_EQ(Types(text), "HdcCZ");
  EXPECT_EQ(text[1].body, "1\t\\N\ta\\tb\\\\\n");
  auto csv = client.Query(
      "COPY (SELECT 1 AS a, NULL::text AS b, 'x,\"y' AS c) TO STDOUT (FORMAT csv, HEADER)");
  ASSERT_EQ(Types(csv), "HddcCZ");
  EXPECT_EQ(csv[1].body + csv[2].body, "a,b,c\n1,,\"x,\"\"y\"\n");
  auto binary = client.Query("COPY (SELECT 7::int4) TO STDOUT (FORMAT binary)");
  ASSERT_EQ(Types(binary), "HdddcCZ");
  EXPECT_EQ(binary[1].body.substr(0, 11), std::string("PGCOPY\n\377\r\n\0", 11));
  EXPECT_EQ(binary[2].body, Body().Int<int16_t>(1).Int<int32_t>(4).Int<int32_t>(7).bytes());
  EXPECT_EQ(binary[3].body, "\xff\xff");
}

TEST_F(Protocol, CopyOfATableGivesEveryRow) {
  RawClient client(port_);
  client.Start();
  auto messages = client.Query("COPY big TO STDOUT");
  EXPECT_EQ(messages.size(), 200'000u + 4);
  EXPECT_EQ(messages[messages.size() - 2].body, std::string("COPY 200000\0", 12));
}

// --- cancel, limits, slow clients

TEST_F(Protocol, CancelRequestsNeedTheRightKey) {
  RawClient client(port_);
  int32_t pid = 0, key = 0;
  for (const Received& message : client.Start())
    if (message.type == 'K') {
      pid = LoadBig<int32_t>(message.body.data());
      key = LoadBig<int32_t>(message.body.data() + 4);
    }
  client.Send(Message('Q', Body().CString("SELECT pg_sleep(30)")));
  usleep(100'000);
  RawClient wrong(port_);
  wrong.SendStartup(Body().Int<int32_t>(80877102).Int(pid).Int(key ^ 1));
  EXPECT_EQ(client.Receive(300).type, 0);  // still asleep
  RawClient right(port_);
  right.SendStartup(Body().Int<int32_t>(80877102).Int(pid).Int(key));
  EXPECT_EQ(SqlStateOf(client.UntilReady()), "57014");
  EXPECT_EQ(Types(client.Query("SELECT 1")), "TDCZ");
}

TEST_F(Protocol, MoreClientsThanAllowedAreToldSo) {
  std::vector<std::unique_ptr<RawClient>> clients;
  std::string state;
  for (int i = 0; i < 13 && state.empty(); i++) {
    clients.push_back(std::make_unique<RawClient>(port_));
    state = SqlStateOf(clients.back()->Start());
  }
  EXPECT_EQ(state, "53300");
  clients.clear();
  ExpectServes();
}

TEST_F(Protocol, AClientThatDoesNotReadHoldsUpNobodyAndCanBeEnded) {
  RawClient slow(port_);
  int32_t pid = 0;
  for (const Received& message : slow.Start())
    if (message.type == 'K') pid = LoadBig<int32_t>(message.body.data());
  slow.Send(Message('Q', Body().CString("SELECT * FROM big")));
  usleep(200'000);
  Client other(cluster_->Url());
  EXPECT_EQ(other.Value("SELECT count(*) FROM big"), "200000");
  EXPECT_EQ(other.Value(fmt::format("SELECT wait_event FROM pg_stat_activity WHERE pid = {}", pid)),
            "ClientWrite");
  EXPECT_EQ(other.Value(fmt::format("SELECT pg_terminate_backend({})", pid)), "t");
  EXPECT_TRUE(Eventually(
      [&] {
        return other.Value(
                   fmt::format("SELECT count(*) FROM pg_stat_activity WHERE pid = {}", pid)) == "0";
      },
      5));
}

TEST_F(Protocol, ACancelWhileTheClientIsSlowLeavesTheStreamInOrder) {
  RawClient slow(port_);
  int32_t pid = 0;
  for (const Received& message : slow.Start())
    if (message.type == 'K') pid = LoadBig<int32_t>(message.body.data());
  slow.Send(Message('Q', Body().CString("SELECT * FROM big")));
  usleep(200'000);
  Client(cluster_->Url()).Must(fmt::format("SELECT pg_cancel_backend({})", pid));
  auto messages = slow.UntilReady();
  EXPECT_EQ(messages.front().type, 'T');
  EXPECT_EQ(SqlStateOf(messages), "57014");
  for (size_t i = 1; i + 2 < messages.size(); i++) ASSERT_EQ(messages[i].type, 'D');
  EXPECT_EQ(messages.back().type, 'Z');
  EXPECT_EQ(Types(slow.Query("SELECT 1")), "TDCZ");
}

TEST_F(Protocol, AStatementTimeoutReachesASlowClient) {
  RawClient slow(port_);
  slow.Start();
  slow.Query("SET statement_timeout = '300ms'");
  slow.Send(Message('Q', Body().CString("SELECT * FROM big")));
  usleep(800'000);
  EXPECT_EQ(SqlStateOf(slow.UntilReady()), "57014");
}

TEST_F(Protocol, AnIdleSessionInATransactionIsEndedByItsTimeout) {
  RawClient client(port_);
  client.Start();
  client.Query("SET idle_in_transaction_session_timeout = '200ms'");
  EXPECT_EQ(client.Receive(500).type, 0);  // not outside a transaction
  client.Query("BEGIN");
  Received last = client.Receive();
  EXPECT_EQ(last.type, 'E');
  EXPECT_EQ(Field(last, 'C'), "25P03");
  EXPECT_EQ(client.Receive().type, 0);
}

}  // namespace
}  // namespace sluice::test
