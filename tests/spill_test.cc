// Rows that nobody reads: slow clients and suspended portals keep nothing from the others. The pool
// here has chunks for two scans of the table.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/harness.h"
#include "tests/raw_client.h"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 80'000;
constexpr const char* kSum = "3200040000";  // of 1 … kRows

// A disk of 1 MB, seen by this process and its children alone. Who is not root has the right to
// mount in a user namespace of his own.
bool MountSmallDisk(const std::string& at) {
  uid_t user = geteuid();
  gid_t group = getegid();
  if (unshare(CLONE_NEWNS | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return false;
  if (user != 0) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
    std::ofstream("/proc/self/gid_map") << group << " " << group << " 1";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", at.c_str(), "tmpfs", 0, "size=1m,mode=0777") == 0;
}

class Spill : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/sluice-spill-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    temp_ = name;
    chmod(name, 0777);
    small_disk_ = temp_ + "/small";  // for the test that fills it
    mkdir(small_disk_.c_str(), 0777);
    mounted_ = MountSmallDisk(small_disk_);
    cluster_ = new Cluster(Cluster::Options{
        .shards = 2,
        .settings = {"chunk_pool_size = '4MB'", "spill_delay = 100", "admission_timeout = 30000",
                     "temp_directory = '" + temp_ + "'"},
        .shard_settings = {}});
    Load(cluster_->Url());
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
    umount(small_disk_.c_str());
    fs::remove_all(temp_);
  }
  static void Load(const std::string& url) {
    Client client(url);
    client.Must("CREATE TABLE big (id int PRIMARY KEY, pad text)");
    client.Must(fmt::format(
        "INSERT INTO big SELECT g, repeat('x', 200) FROM generate_series(1, {}) g", kRows));
  }
  static int Port() {
    std::string url = cluster_->Url();
    return std::stoi(url.substr(url.find("port=") + 5));
  }

  // Reads all rows here, over every shard.
  static void ExpectOthersRun() {
    Client other(cluster_->Url());
    other.Must("SET enable_pushdown_aggregate = off");
    Answer answer = other.Query("SELECT count(*), sum(id) FROM big");
    ASSERT_EQ(answer.sqlstate, "") << answer.message;
    EXPECT_EQ(answer.Text(true), fmt::format("[{}] [{}] \n", kRows, kSum));
  }
  // Files that a server still holds and that have no name any more.
  static int OpenTemporaryFiles() {
    int count = 0;
    std::error_code ignored;
    for (const auto& process : fs::directory_iterator("/proc", ignored))
      for (const auto& fd : fs::directory_iterator(process.path() / "fd", ignored)) {
        std::string target = fs::read_symlink(fd.path(), ignored).string();
        if (target.starts_with(temp_)) count++;
      }
    return count;
  }
  static void ExpectNothingLeft() {
    EXPECT_TRUE(Eventually([] { return OpenTemporaryFiles() == 0; }, 10));
    for (const auto& entry : fs::recursive_directory_iterator(temp_))
      EXPECT_FALSE(entry.is_regular_file()) << entry.path();
  }

  static Cluster* cluster_;
  static std::string temp_, small_disk_;
  static bool mounted_;
};
Cluster* Spill::cluster_ = nullptr;
std::string Spill::temp_, Spill::small_disk_;
bool Spill::mounted_ = false;

struct Sum {
  int64_t rows = 0, ids = 0;
  void Add(const Answer& answer) {
    for (const auto& row : answer.rows) {
      rows++;
      ids += std::stoll(row[0].value_or("0"));
    }
  }
};

TEST_F(Spill, ManyCursorsThatNobodyFetchesFromHoldUpNobody) {
  constexpr int kCursors = 8;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Sum> sums(kCursors);
  for (int i = 0; i < kCursors; i++) {
    clients.push_back(std::make_unique<Client>(cluster_->Url()));
    clients[i]->Must("BEGIN");
    clients[i]->Must(fmt::format("DECLARE c CURSOR FOR SELECT id, {} FROM big",
                                 i % 2 == 0 ? "pad" : "pad || id::text"));
    sums[i].Add(clients[i]->Must("FETCH 7 FROM c"));
  }
  ExpectOthersRun();
  EXPECT_GT(OpenTemporaryFiles(), 0);
  // Some read on while others put their rows aside; some only a little.
  for (int i = 0; i < kCursors; i++)
    sums[i].Add(clients[i]->Must("FETCH " + std::to_string(1 + i * 1111) + " FROM c"));
  ExpectOthersRun();
  for (int i = 0; i < kCursors; i++) {
    sums[i].Add(clients[i]->Must("FETCH ALL FROM c"));
    EXPECT_EQ(sums[i].rows, kRows);
    EXPECT_EQ(std::to_string(sums[i].ids), kSum);
    EXPECT_EQ(clients[i]->Must("FETCH 1 FROM c").rows.size(), 0u);
    clients[i]->Must("COMMIT");
  }
  ExpectNothingLeft();
}

TEST_F(Spill, ASessionDoesNotWaitForItsOwnCursors) {
  Client client(cluster_->Url());
  client.Must("BEGIN");
  for (int i = 0; i < 5; i++) {
    client.Must(fmt::format("DECLARE c{} CURSOR FOR SELECT id, pad FROM big", i));
    EXPECT_EQ(client.Must(fmt::format("FETCH 3 FROM c{}", i)).rows.size(), 3u);
  }
  for (int i = 0; i < 5; i++) {
    Sum sum;
    sum.Add(client.Must(fmt::format("FETCH ALL FROM c{}", i)));
    EXPECT_EQ(sum.rows, kRows - 3);
  }
}

TEST_F(Spill, OrderIsKept) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 4; i++) {
    clients.push_back(std::make_unique<Client>(cluster_->Url()));
    clients[i]->Must("BEGIN");
    clients[i]->Must("DECLARE c CURSOR FOR SELECT id, pad FROM big ORDER BY id DESC");
    EXPECT_EQ(clients[i]->Must("FETCH 2 FROM c").rows[1][0], std::to_string(kRows - 1));
  }
  for (auto& client : clients) {
    Answer answer = client->Must("FETCH ALL FROM c");
    ASSERT_EQ(answer.rows.size(), size_t{kRows - 2});
    for (int i = 0; i < kRows - 2; i++) ASSERT_EQ(answer.rows[i][0], std::to_string(kRows - 2 - i));
  }
}

// Portals of the protocol pass rows through as the shards sent them.
TEST_F(Spill, ManySuspendedPortalsHoldUpNobody) {
  constexpr int kPortals = 6;
  auto parse = Message('P', Body().CString("").CString("SELECT id, pad FROM big").Int<int16_t>(0));
  auto bind =
      Message('B', Body().CString("p").CString("").Int<int16_t>(0).Int<int16_t>(0).Int<int16_t>(0));
  auto execute = [](int rows) { return Message('E', Body().CString("p").Int<int32_t>(rows)); };
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<Sum> sums(kPortals);
  auto count = [&](int i, const std::vector<Received>& messages) {
    EXPECT_EQ(SqlStateOf(messages), "");
    for (const Received& message : messages) {
      if (message.type != 'D') continue;
      sums[i].rows++;
      sums[i].ids += std::stoll(message.body.substr(6, LoadBig<uint32_t>(message.body.data() + 2)));
    }
  };
  for (int i = 0; i < kPortals; i++) {
    clients.push_back(std::make_unique<RawClient>(Port()));
    clients[i]->Start();
    clients[i]->Query("BEGIN");
    clients[i]->Send(parse + bind + execute(5) + Message('S'));
    count(i, clients[i]->UntilReady());
    EXPECT_EQ(sums[i].rows, 5);
  }
  ExpectOthersRun();
  for (int i = 0; i < kPortals; i++) {
    clients[i]->Send(execute(1000 + i) + Message('S'));
    count(i, clients[i]->UntilReady());
  }
  ExpectOthersRun();
  for (int i = 0; i < kPortals; i++) {
    clients[i]->Send(execute(0) + Message('S'));
    count(i, clients[i]->UntilReady());
    EXPECT_EQ(sums[i].rows, kRows);
    EXPECT_EQ(std::to_string(sums[i].ids), kSum);
  }
  clients.clear();
  ExpectNothingLeft();
}

TEST_F(Spill, ManyClientsThatDoNotReadHoldUpNobody) {
  std::vector<std::string> statements = {
      "SELECT id, pad FROM big", "SELECT id, pad || 'y' FROM big", "COPY big TO STDOUT",
      "SELECT id, pad FROM big", "SELECT id + 1, upper(pad) FROM big"};
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const auto& sql : statements) {
    clients.push_back(std::make_unique<RawClient>(Port()));
    clients.back()->Start();
    if (clients.size() == 2) clients.back()->Query("SET enable_pass_through = off");
    clients.back()->Send(Message('Q', Body().CString(sql)));
  }
  for (int i = 0; i < 3; i++) ExpectOthersRun();
  for (size_t i = 0; i < clients.size(); i++) {
    SCOPED_TRACE(statements[i]);
    int64_t rows = 0, seen = 0;
    for (const Received& message : clients[i]->UntilReady()) {
      EXPECT_NE(message.type, 'E') << Field(message, 'M');
      if (message.type == 'D' || message.type == 'd') rows++;
      if (message.type == 'D')
        seen += std::stoll(message.body.substr(6, LoadBig<uint32_t>(message.body.data() + 2)));
      if (message.type == 'd') seen += std::stoll(message.body);
    }
    EXPECT_EQ(rows, kRows);
    EXPECT_EQ(seen - (i == 4 ? kRows : 0), std::stoll(kSum));
  }
  clients.clear();
  ExpectNothingLeft();
}

TEST_F(Spill, AStatementThatThePoolCannotHoldIsRefusedAndOthersRun) {
  Client client(cluster_->Url());
  client.Must("SET enable_pushdown_join = off");
  Answer answer = client.Query(
      "SELECT count(*) FROM big a JOIN big b USING (id) JOIN big c USING (id) JOIN big d USING "
      "(id) "
      "JOIN big e USING (id) JOIN big f USING (id) JOIN big g USING (id) JOIN big h USING (id) "
      "JOIN big i USING (id)");
  EXPECT_EQ(answer.sqlstate, "53200") << answer.message;
  EXPECT_EQ(answer.hint, "Increase chunk_pool_size.");
  EXPECT_EQ(client.Value("SELECT count(*) FROM big"), std::to_string(kRows));
  ExpectOthersRun();
}

TEST_F(Spill, AClientThatGoesAwayMeanwhileFreesAll) {
  {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 5; i++) {
      clients.push_back(std::make_unique<RawClient>(Port()));
      clients.back()->Start();
      clients.back()->Send(Message('Q', Body().CString("SELECT id, pad FROM big")));
    }
    usleep(300'000);
  }
  ExpectOthersRun();
  ExpectNothingLeft();
}

TEST_F(Spill, AFullDiskIsTheFailureOfTheSuspendedOneOnly) {
  if (!mounted_)
    GTEST_SKIP() << "SKIPPED: here nobody may mount a file system (a chroot, a container); "
                    "what a full disk does is not tested";
  std::string server = cluster_->StartServer(
      "full",
      {"chunk_pool_size = '4MB'", "spill_delay = 100", "temp_directory = '" + small_disk_ + "'"});
  Client(server).Must("CALL sluice.attach_table('big')");
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; i++) {
    clients.push_back(std::make_unique<Client>(server));
    clients[i]->Must("BEGIN");
    clients[i]->Must("DECLARE c CURSOR FOR SELECT id, pad FROM big");
    clients[i]->Must("FETCH 1 FROM c");
  }
  Client other(server);
  EXPECT_EQ(other.Value("SELECT count(*) FROM big WHERE length(pad) > 0"), std::to_string(kRows));
  int full = 0;
  for (auto& client : clients) {
    Answer answer = client->Query("FETCH ALL FROM c");
    if (answer.sqlstate == "53100")
      full++;
    else
      EXPECT_EQ(answer.rows.size(), size_t{kRows - 1}) << answer.message;
  }
  EXPECT_GT(full, 0);
  EXPECT_EQ(Client(server).Value("SELECT count(*) FROM big"), std::to_string(kRows));
}

TEST_F(Spill, AConfiguredDirectoryIsCleanedAtStart) {
  std::string own;
  for (const auto& entry : fs::directory_iterator(temp_))
    if (entry.path().filename().string().starts_with("sluice_")) own = entry.path();
  ASSERT_NE(own, "");
  std::ofstream(own + "/spill_join_4711_0x1_2_3_4.5") << "left by a process that was killed";
  std::ofstream(temp_ + "/somebody_elses") << "not ours";
  std::string data = cluster_->directory() + "/sluice";
  ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "stop", "-D", data}), 0);
  ASSERT_EQ(cluster_->RunAsOwner({SluiceBinary(), "start", "-D", data}), 0);
  EXPECT_TRUE(fs::is_empty(own));
  EXPECT_TRUE(fs::exists(temp_ + "/somebody_elses"));
  fs::remove(temp_ + "/somebody_elses");
}

}  // namespace
}  // namespace sluice::test
