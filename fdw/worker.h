// What the parts of the io worker share. One per process; everything here is process-local.
#pragma once

#include <memory>
#include <vector>

#include "fdw/io_ring.h"
#include "fdw/io_worker.h"
#include "fdw/timer.h"

namespace sluice {

class Connection;
class GroupSet;
class PoolSet;
class StreamTask;

struct Worker {
  IoWorkerConfig config;
  std::unique_ptr<IoRing> ring;
  TimerQueue timers;
  int64_t now_us = 0;  // at the start of this round of the loop

  std::unique_ptr<PoolSet> pools;
  std::unique_ptr<GroupSet> groups;

  // Tasks that wait for something another process does (a chunk returns, input arrives): all are
  // resumed after this process's latch was set, and put themselves here again if they still wait.
  std::vector<StreamTask*> waiting;
  // Closed connections whose operations may not all be done.
  std::vector<std::unique_ptr<Connection>> graveyard;
};

}  // namespace sluice
