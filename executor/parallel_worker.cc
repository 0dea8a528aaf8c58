#include <unistd.h>

#include "common/log.h"
#include "executor/executor.h"
#include "executor/fragment.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

// What pg_stat_activity shows: whose query it is and which.
void ShowQuery(const ParallelQuery& query) {
  const ProcSlot& leader = shared_memory->processes.slots[query.leader];
  BeginActivityWrite();
  my_proc->state = ActivityState::kActive;
  my_proc->leader = query.leader;
  my_proc->query_id = query.query_id;
  // The leader runs this very query, so its own row does not change meanwhile.
  my_proc->xact_start = leader.xact_start;
  my_proc->query_start = leader.query_start;
  my_proc->state_change = leader.query_start;
  std::memcpy(my_proc->user, leader.user, sizeof my_proc->user);
  std::memcpy(my_proc->database, leader.database, sizeof my_proc->database);
  std::memcpy(my_proc->application_name, leader.application_name, sizeof my_proc->application_name);
  size_t length = strnlen(query.query_text, sizeof query.query_text);
  std::memcpy(my_proc->query, query.query_text, length);
  my_proc->query[length] = 0;
  EndActivityWrite();
}

void ShowNothing() {
  BeginActivityWrite();
  my_proc->state = ActivityState::kNone;
  my_proc->leader = kNoProc;
  my_proc->query_id = 0;
  my_proc->xact_start = my_proc->query_start = my_proc->state_change = 0;
  my_proc->user[0] = my_proc->database[0] = my_proc->application_name[0] = 0;
  my_proc->query[0] = 0;
  EndActivityWrite();
}

void RunAssignment(ParallelQuery* query, const std::function<void()>& before_query) {
  // A cancel is the leader's; one that arrived here before is not for this query.
  my_proc->cancel_requested.store(0, std::memory_order_relaxed);
  ShowQuery(*query);
  if (before_query) {
    try {
      before_query();
    } catch (const QueryError& e) {
      ReportError(query, e.error);  // the fragment then stops before it begins
    }
  }
  RunFragment(query);
  ShowNothing();
}

}  // namespace

// Signal handlers are the postmaster's (they set this process's request flags and its latch).
void ParallelWorkerMain(const std::function<void()>& before_query) {
  ShowNothing();
  for (;;) {
    ResetLatch(&my_proc->latch);
    if (ParallelQuery* query = TakeAssignment()) {
      RunAssignment(query, before_query);
      continue;
    }
    if (my_proc->terminate_requested.load(std::memory_order_relaxed) != 0) break;
    my_proc->reload_requested.store(0, std::memory_order_relaxed);  // a query brings its settings
    WaitLatch(&my_proc->latch, {}, -1, WaitEvent::kParallelWorkerMain);
  }
  _exit(0);
}

}  // namespace sluice
