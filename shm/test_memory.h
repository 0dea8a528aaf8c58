// For tests: a small shared memory of their own, and processes or threads that play its processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "shm/shared_memory.h"

namespace sluice {

class SharedMemoryTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kChunks = 64;

  void SetUp() override {
    SharedMemoryConfig config;
    config.chunk_size_bytes = 16 * 1024;
    config.chunk_pool_bytes = kChunks * config.chunk_size_bytes;
    config.sparse_bytes = 256ull << 20;
    config.max_connections = 16;
    config.max_parallel_workers = 8;
    config.request_ring_size = 64;
    ASSERT_TRUE(CreateSharedMemory(config).ok());
    processes_ = &shared_memory->processes;
    Play(Backend(0), ProcessKind::kClientBackend);
  }
  void TearDown() override { DestroySharedMemory(); }

  ProcNumber Backend(uint32_t i) const { return processes_->first_backend + i; }
  ProcNumber Worker(uint32_t i) const { return processes_->first_parallel_worker + i; }
  ProcSlot& Slot(ProcNumber number) const { return processes_->slots[number]; }

  // Makes the calling thread or process that of a slot.
  void Play(ProcNumber number, ProcessKind kind) {
    PrepareSlot(&Slot(number), kind);
    Slot(number).pid.store(getpid());
    AttachProcess(number);
  }

  template <typename Fn>
  pid_t Fork(ProcNumber number, ProcessKind kind, Fn&& fn) {
    PrepareSlot(&Slot(number), kind);
    pid_t pid = fork();
    if (pid == 0) {
      AttachProcess(number);
      Slot(number).pid.store(getpid());
      _exit(fn());
    }
    return pid;
  }
  static int ExitCode(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  ProcessTable* processes_ = nullptr;
  SharedBlocks blocks_;
};

}  // namespace sluice
