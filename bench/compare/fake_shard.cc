#include "bench/compare/fake_shard.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/compare/drain.h"
#include "common/bytes.h"
#include "wire/message.h"

namespace sluice::bench {
namespace {

constexpr uint64_t kRowsPerBlock = 2000;

void AppendField(MessageWriter* writer, std::string_view bytes) {
  writer->Int<int32_t>(static_cast<int32_t>(bytes.size()));
  writer->Bytes(bytes);
}

// numeric: two base-10000 digits before and after the point, dscale 2.
std::string NumericBytes(int whole, int hundredths) {
  std::string bytes(12, '\0');
  StoreBig<int16_t>(bytes.data(), 2);      // ndigits
  StoreBig<int16_t>(bytes.data() + 2, 0);  // weight
  StoreBig<int16_t>(bytes.data() + 4, 0);  // sign
  StoreBig<int16_t>(bytes.data() + 6, 2);  // dscale
  StoreBig<int16_t>(bytes.data() + 8, static_cast<int16_t>(whole));
  StoreBig<int16_t>(bytes.data() + 10, static_cast<int16_t>(hundredths * 100));
  return bytes;
}

std::string MakeBlock() {
  static const char* kRegions[] = {"emea", "apac", "amer", "latam"};
  std::string block;
  MessageWriter writer(&block);
  for (uint64_t i = 0; i < kRowsPerBlock; i++) {
    writer.Begin('D');
    writer.Int<int16_t>(3);
    AppendField(&writer, kRegions[i % 4]);
    AppendField(&writer,
                NumericBytes(1 + static_cast<int>(i * 37 % 999), 1 + static_cast<int>(i % 99)));
    char qty[4];
    StoreBig<int32_t>(qty, static_cast<int32_t>(i % 50));
    AppendField(&writer, {qty, 4});
    writer.End();
  }
  return block;
}

class Session {
 public:
  Session(int fd, const FakeShardOptions& options, FakeShardState* state)
      : fd_(fd), options_(options), state_(state), block_(MakeBlock()) {}

  void Run() {
    while (!startup_done_) {
      auto message = Next(true);
      if (!message) return;
      BodyReader body(message->body);
      int32_t code = body.Int<int32_t>();
      if (code == 80877103 || code == 80877104) {
        Write("N");
        continue;
      }
      if (code == 80877102) return;
      Greet();
      startup_done_ = true;
    }
    while (auto message = Next(false))
      if (!Handle(message->type, message->body)) return;
  }

 private:
  std::optional<MessageReader::Message> Next(bool startup) {
    for (;;) {
      if (auto message = reader_.Take(startup)) return message;
      size_t room = 0;
      char* buffer = reader_.Buffer(&room);
      ssize_t n = recv(fd_, buffer, room, 0);
      if (n <= 0) return std::nullopt;
      reader_.Commit(static_cast<size_t>(n));
    }
  }

  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  void Greet() {
    std::string out;
    MessageWriter writer(&out);
    writer.Begin('R');
    writer.Int<int32_t>(0);
    writer.End();
    for (auto [name, value] : {std::pair{"server_version", "15.0"},
                               {"client_encoding", "UTF8"},
                               {"server_encoding", "UTF8"},
                               {"DateStyle", "ISO, MDY"},
                               {"integer_datetimes", "on"},
                               {"standard_conforming_strings", "on"}}) {
      writer.Begin('S');
      writer.CString(name);
      writer.CString(value);
      writer.End();
    }
    writer.Begin('K');
    writer.Int<int32_t>(getpid());
    writer.Int<int32_t>(1);
    writer.End();
    Ready(&writer);
    Write(out);
  }

  void Ready(MessageWriter* writer) {
    writer->Begin('Z');
    writer->Bytes("I");
    writer->End();
  }
  void Complete(MessageWriter* writer, std::string_view tag) {
    writer->Begin('C');
    writer->CString(tag);
    writer->End();
  }
  void Empty(MessageWriter* writer, char type) {
    writer->Begin(type);
    writer->End();
  }
  bool Selects() const { return sql_.find("fake") != std::string::npos; }

  void DescribeRow(MessageWriter* writer) {
    if (!Selects()) return Empty(writer, 'n');
    writer->Begin('T');
    writer->Int<int16_t>(3);
    for (auto [name, type] : {std::pair{"region", 25}, {"amount", 1700}, {"qty", 23}}) {
      writer->CString(name);
      writer->Int<int32_t>(0);
      writer->Int<int16_t>(0);
      writer->Int<int32_t>(type);
      writer->Int<int16_t>(-1);
      writer->Int<int32_t>(-1);
      writer->Int<int16_t>(1);
    }
    writer->End();
  }

  bool SendRows() {
    double start = Now();
    state_->started = start;
    uint64_t sent = 0;
    while (sent < options_.rows) {
      uint64_t count = std::min(kRowsPerBlock, options_.rows - sent);
      // Rows differ by a byte or two, so a part of a block is cut at a row by walking it.
      size_t bytes = block_.size();
      if (count < kRowsPerBlock) {
        bytes = 0;
        for (uint64_t i = 0; i < count; i++)
          bytes += 1 + LoadBig<uint32_t>(block_.data() + bytes + 1);
      }
      if (!Write({block_.data(), bytes})) return false;
      sent += count;
      if (options_.rows_per_second > 0) {
        double ahead = static_cast<double>(sent) / options_.rows_per_second - (Now() - start);
        if (ahead > 0.001) usleep(static_cast<useconds_t>(ahead * 1e6));
        // A shard that was held back does not make up for it afterwards.
        if (ahead < -0.005) start -= ahead;
      }
    }
    state_->finished = Now();
    return true;
  }

  bool Handle(char type, std::string_view body) {
    std::string out;
    MessageWriter writer(&out);
    BodyReader reader(body);
    switch (type) {
      case 'Q':
        sql_ = reader.CString();
        Complete(&writer, "SET");
        Ready(&writer);
        break;
      case 'P':
        reader.CString();
        sql_ = reader.CString();
        Empty(&writer, '1');
        break;
      case 'B':
        Empty(&writer, '2');
        break;
      case 'C':
        Empty(&writer, '3');
        break;
      case 'D':
        DescribeRow(&writer);
        break;
      case 'E':
        if (Selects() && !SendRows()) return false;
        Complete(&writer, Selects() ? fmt::format("SELECT {}", options_.rows) : "SET");
        break;
      case 'S':
        Ready(&writer);
        break;
      case 'H':
        break;
      default:
        return false;
    }
    return Write(out);
  }

  int fd_;
  const FakeShardOptions& options_;
  FakeShardState* state_;
  std::string block_;
  MessageReader reader_;
  bool startup_done_ = false;
  std::string sql_;
};

[[noreturn]] void Serve(int listener, const FakeShardOptions& options, FakeShardState* state) {
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) continue;
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Session(fd, options, state).Run();
      _exit(0);
    }
    close(fd);
  }
}

}  // namespace

FakeShard::FakeShard(const FakeShardOptions& options) {
  state_ = static_cast<FakeShardState*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 64) != 0)
    throw std::runtime_error("fake shard: cannot listen");
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Serve(listener, options, state_);
  }
  close(listener);
}

FakeShard::~FakeShard() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  munmap(state_, 4096);
}

}  // namespace sluice::bench
