// Tests only: a real Postgres of their own, and a backend's side of the contract.
#pragma once

#include <cstdlib>
#include <deque>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "fdw/io_worker.h"
#include "fdw/timer.h"
#include "shm/process_table.h"
#include "shm/query_arena.h"
#include "shm/shared_memory.h"
#include "shm/stream.h"

namespace sluice {

// A Postgres cluster under /tmp, run by the user postgres if we are root; gone with the object.
class TestShard {
 public:
  TestShard() {
    char directory[] = "/tmp/sluice_fdw_XXXXXX";
    if (mkdtemp(directory) == nullptr) abort();
    directory_ = directory;
    if (geteuid() == 0) Must("chown postgres " + directory_);
    for (port_ = 6300; port_ < 6310; port_++) {
      if (Shell("ss -Hltn 'sport = :" + std::to_string(port_) + "' | grep -q .") != 0) break;
    }
    AsPostgres(kBin + "initdb -D " + directory_ +
               "/data -A trust -U postgres -E UTF8 --locale=C.UTF-8 -N");
    std::ofstream conf(directory_ + "/data/postgresql.conf", std::ios::app);
    conf << "fsync = off\nlisten_addresses = '127.0.0.1'\nmax_connections = 60\n"
         << "unix_socket_directories = '" << directory_ << "'\nport = " << port_ << "\n"
         << "max_prepared_transactions = 10\nwal_level = logical\nautovacuum = off\n";
    conf.close();
    Start();
  }
  ~TestShard() {
    Stop("immediate");
    Must("rm -rf " + directory_);
  }
  void Start() {
    AsPostgres(kBin + "pg_ctl -w -D " + directory_ + "/data -l " + directory_ + "/log start");
  }
  void Stop(const std::string& mode) {
    AsPostgres(kBin + "pg_ctl -w -D " + directory_ + "/data stop -m " + mode);
  }
  // With a certificate of its own making.
  void EnableTls() {
    std::string data = directory_ + "/data";
    AsPostgres("openssl req -new -x509 -nodes -days 2 -subj /CN=localhost -out " + data +
               "/server.crt -keyout " + data + "/server.key 2>/dev/null");
    AsPostgres("chmod 600 " + data + "/server.key");
    Psql("ALTER SYSTEM SET ssl = on");
    Psql("SELECT pg_reload_conf()");
  }
  // The first column of the first row, by psql: not by what is under test.
  std::string Psql(const std::string& sql, const std::string& options = "") {
    std::string file = directory_ + "/psql.out";
    std::ofstream(directory_ + "/psql.sql") << sql;
    Must("psql -X -q -A -t -h " + directory_ + " -p " + std::to_string(port_) + " -U postgres " +
         options + " -v ON_ERROR_STOP=1 -f " + directory_ + "/psql.sql postgres > " + file);
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    std::string result = text.str();
    while (!result.empty() && result.back() == '\n') result.pop_back();
    return result;
  }
  const std::string& directory() const { return directory_; }
  int port() const { return port_; }
  std::string pid_file() const { return directory_ + "/data/postmaster.pid"; }

 private:
  static int Shell(const std::string& command) { return system(command.c_str()); }
  static void Must(const std::string& command) {
    if (Shell(command) != 0) {
      fprintf(stderr, "failed: %s\n", command.c_str());
      abort();
    }
  }
  static void AsPostgres(const std::string& command) {
    Must((geteuid() == 0 ? "cd /tmp && runuser -u postgres -- " : "") + ("sh -c '" + command) +
         "' > /dev/null");
  }
  static inline const std::string kBin = "/usr/lib/postgresql/15/bin/";

  std::string directory_;
  int port_ = 0;
};

// The shared memory, a forked io worker, and this process as a client backend.
class TestServer {
 public:
  // `in_child` runs in the io worker's process before its main function.
  explicit TestServer(const IoWorkerConfig& config = {}, SharedMemoryConfig memory = {},
                      void (*in_child)() = nullptr) {
    memory.max_connections = 8;
    // Chunks smaller than a page, so that every boundary is crossed, are not for the server: only
    // here.
    uint32_t chunk_bytes = memory.chunk_size_bytes;
    memory.chunk_size_bytes = (chunk_bytes + 4095) / 4096 * 4096;
    Status status = CreateSharedMemory(memory);
    if (!status.ok()) {
      fprintf(stderr, "%s\n", status.error().message.c_str());
      abort();
    }
    shared_memory->chunks.chunk_size_bytes = chunk_bytes;
    PrepareSlot(&shared_memory->processes.slots[kIoWorkerProc], ProcessKind::kIoWorker);
    ProcNumber me = shared_memory->processes.first_backend;
    PrepareSlot(&shared_memory->processes.slots[me], ProcessKind::kClientBackend);
    io_worker_ = fork();
    if (io_worker_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      AttachProcess(kIoWorkerProc);
      if (in_child != nullptr) in_child();
      IoWorkerMain(config);
    }
    AttachProcess(me);
    // Nobody restarts it here: without it the tests would wait for ever.
    watched_ = io_worker_;
    signal(SIGCHLD, [](int) {
      siginfo_t info{};
      if (waitid(P_PID, static_cast<id_t>(watched_), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return;
      if (info.si_pid != watched_) return;
      constexpr char text[] = "the io worker died\n";
      if (write(2, text, sizeof text - 1) > 0) abort();
    });
  }
  ~TestServer() {
    signal(SIGCHLD, SIG_DFL);
    EXPECT_EQ(shared_memory->chunks.in_use.load(), 0u) << "chunks leaked";
    EXPECT_EQ(shared_memory->chunks.unreserved.load(), shared_memory->chunks.chunk_count);
    kill(io_worker_, SIGTERM);
    int status = 0;
    waitpid(io_worker_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "the io worker ended with " << status;
    DestroySharedMemory();
    my_proc = nullptr;
  }
  pid_t io_worker() const { return io_worker_; }

 private:
  static inline pid_t watched_ = 0;
  pid_t io_worker_;
};

// One StreamGroup, built as a backend builds it. All streams share one queue.
class TestGroup {
 public:
  explicit TestGroup(uint32_t streams) : arena_(blocks_) {
    group_ = new (arena_.Allocate(sizeof(StreamGroup), 64)) StreamGroup{};
    group_->backend = my_proc_number;
    group_->streams = arena_.NewArray<Stream>(streams);
    for (uint32_t i = 0; i < streams; i++) {
      Stream& stream = group_->streams[i];
      stream.index = static_cast<uint16_t>(i);
      stream.group = group_;
      stream.chunk_quota = 4;
      stream.producer = kIoWorkerProc;
    }
  }
  ~TestGroup() { Close(); }

  ConnectionSpec* Spec(const std::vector<std::pair<std::string, std::string>>& options,
                       uint32_t connections_max = 10, std::string_view setup = "") {
    auto* spec = new (arena_.Allocate(sizeof(ConnectionSpec), 16)) ConnectionSpec{};
    auto keywords = arena_.NewArray<std::string_view>(options.size());
    auto values = arena_.NewArray<std::string_view>(options.size());
    std::string key;
    for (size_t i = 0; i < options.size(); i++) {
      keywords[i] = arena_.CopyString(options[i].first);
      values[i] = arena_.CopyString(options[i].second);
      key += options[i].first + "=" + options[i].second + " ";
    }
    spec->pool_key = arena_.CopyString(key);
    spec->server_name = "s1";
    spec->keywords = keywords;
    spec->values = values;
    spec->connections_max = connections_max;
    spec->session_setup = arena_.CopyString(setup);
    return spec;
  }
  ConnectionSpec* Spec(const TestShard& shard) {
    return Spec({{"host", shard.directory()},
                 {"port", std::to_string(shard.port())},
                 {"user", "postgres"},
                 {"dbname", "postgres"}});
  }
  Stream& operator[](size_t i) { return group_->streams[i]; }
  StreamGroup* operator->() { return group_; }
  Arena& arena() { return arena_; }

  void Set(size_t i, StreamKind kind, const ConnectionSpec* spec, std::string_view sql) {
    Stream& stream = group_->streams[i];
    stream.kind = kind;
    stream.connection = spec;
    stream.sql = arena_.CopyString(sql);
  }
  void Open() {
    uint32_t slices = 0;
    for (Stream& stream : group_->streams) slices += SlicesMax(stream.chunk_quota);
    queue_ = MakeReadyQueue(&arena_, slices, static_cast<uint32_t>(group_->streams.size()));
    for (Stream& stream : group_->streams) stream.output = queue_;
    OpenStreams(group_);
    consumer_.emplace(queue_, 0);
  }
  bool Next(Slice* slice) { return consumer_->ClaimOrWait(slice, WaitEvent::kAppendReady); }
  void Close() {
    if (closed_) return;
    closed_ = true;
    CloseStreams(group_);
  }

 private:
  SharedBlocks blocks_;
  Arena arena_;
  StreamGroup* group_;
  ReadyQueue* queue_ = nullptr;
  std::optional<ChunkConsumer> consumer_;
  bool closed_ = false;
};

// Everything that came, taken in until all streams ended.
struct Drained {
  uint64_t rows = 0, bytes = 0, slices = 0, ends = 0, oversized = 0;
  uint64_t checksum = 0;          // of the row messages' bytes, whatever their order
  std::vector<std::string> text;  // the first column of the first rows
  std::vector<StreamState> states;

  static uint64_t Hash(std::string_view bytes) { return PoolKeyHash(bytes); }
  void Take(const Slice& slice) {
    slices++;
    bytes += slice.size_bytes;
    oversized += slice.kind == SliceKind::kOversized;
    uint32_t rows_here = 0;
    size_t at = 0;
    while (at < slice.size_bytes) {
      uint32_t length = 0;
      ASSERT_GE(slice.size_bytes - at, 5u);
      std::memcpy(&length, slice.data + at + 1, 4);
      length = __builtin_bswap32(length);
      ASSERT_LE(at + 1 + length, slice.size_bytes);
      std::string_view message(slice.data + at, length + 1);
      ASSERT_EQ(message[0], slice.kind == SliceKind::kCopyData ? 'd' : 'D');
      checksum += Hash(message);
      if (text.size() < 100 && message[0] == 'D' && message.size() >= 11) {
        uint32_t width;
        std::memcpy(&width, message.data() + 7, 4);
        text.emplace_back(message.substr(11, __builtin_bswap32(width)).substr(0, 100));
      } else if (text.size() < 100) {
        text.emplace_back(message.substr(5, 200));
      }
      rows_here++;
      at += message.size();
    }
    ASSERT_EQ(rows_here, slice.rows);
    rows += slice.rows;
  }
};

inline Drained Drain(TestGroup* group) {
  Drained drained;
  Slice slice;
  while (group->Next(&slice)) {
    if (slice.kind == SliceKind::kEnd) {
      drained.ends++;
    } else {
      drained.Take(slice);
    }
    ReleaseSlice(slice);
  }
  for (const Stream& stream : (*group)->streams) {
    drained.states.push_back(stream.state.load(std::memory_order_acquire));
  }
  return drained;
}

}  // namespace sluice
