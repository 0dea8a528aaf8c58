// Every place where a process sleeps, as pg_stat_activity shows it: SUBSYSTEM_ACTION, "Waiting to".
#pragma once

#include <cstdint>

namespace sluice {

// X(enumerator, wait_event_type, wait_event, description)
#define SLUICE_WAIT_EVENTS(X)                                                                      \
  X(kNone, "", "", "Running")                                                                      \
  X(kClientRead, "Client", "ClientRead", "Waiting to read data from the client")                   \
  X(kClientWrite, "Client", "ClientWrite", "Waiting to write data to the client")                  \
  X(kIoWorkerMain, "Activity", "IoWorkerMain", "Waiting in main loop of the io worker")            \
  X(kParallelWorkerMain, "Activity", "ParallelWorkerMain",                                         \
    "Waiting in a parallel worker for work")                                                       \
  X(kPostmasterMain, "Activity", "PostmasterMain", "Waiting in main loop of the postmaster")       \
  X(kAppendReady, "IPC", "AppendReady", "Waiting for any child of an Append to have rows ready")   \
  X(kMergeReady, "IPC", "MergeReady",                                                              \
    "Waiting for the next rows of one stream of an ordered merge")                                 \
  X(kShardRead, "IPC", "ShardRead", "Waiting for the answer of a shard whose connection is lent")  \
  X(kLeaseReturn, "IPC", "LeaseReturn", "Waiting for the io worker to take back connections")      \
  X(kStreamAdmission, "IPC", "StreamAdmission", "Waiting for chunks or connections to be free")    \
  X(kStreamClose, "IPC", "StreamClose",                                                            \
    "Waiting for the io worker to let go of a query's streams")                                    \
  X(kCopyInQueue, "IPC", "CopyInQueue", "Waiting to hand rows to the io worker for a shard")       \
  X(kGatherReady, "IPC", "GatherReady", "Waiting for parallel workers to deliver rows")            \
  X(kGatherQueueFull, "IPC", "GatherQueueFull", "Waiting for the leader to take rows")             \
  X(kHashBuild, "IPC", "HashBuild", "Waiting for other participants to finish a hash build")       \
  X(kParallelFinish, "IPC", "ParallelFinish", "Waiting for parallel workers to finish")            \
  X(kViewWorkerMain, "Activity", "ViewWorkerMain", "Waiting in main loop of the view worker")      \
  X(kViewProgress, "IPC", "ViewProgress",                                                          \
    "Waiting for a materialized view to be created or to catch up")                                \
  X(kTransactionResolverMain, "Activity", "TransactionResolverMain",                               \
    "Waiting in main loop of the transaction resolver")                                            \
  X(kCommitGate, "IPC", "CommitGate",                                                              \
    "Waiting for the io worker to hold back reads of a decision")                                  \
  X(kTransactionRecovery, "IPC", "TransactionRecovery",                                            \
    "Waiting until a server has carried out what was committed before a crash")                    \
  X(kSubscription, "IPC", "Subscription", "Waiting for changes of a subscribed materialized view") \
  X(kCatalogLock, "Lock", "Catalog", "Waiting to change the catalog")                              \
  X(kPgSleep, "Timeout", "PgSleep", "Waiting due to a call to pg_sleep")

enum class WaitEvent : uint32_t {
#define X(enumerator, type, name, description) enumerator,
  SLUICE_WAIT_EVENTS(X)
#undef X
};

struct WaitEventName {
  const char* type;
  const char* name;
  const char* description;
};
const WaitEventName& NameOf(WaitEvent event);

}  // namespace sluice
