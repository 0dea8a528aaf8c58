#include "postmaster/server_kernels.h"

#include "catalog/privilege.h"
#include "postmaster/catalog_kernels.h"
#include "postmaster/object_names.h"
#include "postmaster/sequence_kernels.h"
#include "shm/shared_memory.h"
#include "types/kernel_registry.h"

namespace sluice {
namespace {

struct Request {
  std::atomic<uint32_t> ProcSlot::*flag;
  const char* of_superuser;
  const char* of_others;
};
constexpr Request kCancel = {
    &ProcSlot::cancel_requested, "must be a superuser to cancel superuser query",
    "must be a member of the role whose query is being canceled or member of pg_signal_backend"};
constexpr Request kTerminate = {
    &ProcSlot::terminate_requested, "must be a superuser to terminate superuser process",
    "must be a member of the role whose process is being terminated or member of "
    "pg_signal_backend"};

// The server's own processes are a superuser's.
void RequireMayEnd(const ProcSlot& slot, const Request& request) {
  const CatalogSession& session = CurrentCatalogSession();
  const Role* self = session.catalog->FindRole(session.user);
  ActivityRow target;
  if (self == nullptr || self->superuser || !ReadActivity(slot, &target)) return;
  const Role* role = session.catalog->FindRole(target.user);
  bool of_superuser = role == nullptr || role->superuser;
  if (of_superuser || !HasPrivilegesOf(*session.catalog, *self, role->oid))
    Throw(sqlstate::kInsufficientPrivilege, "{}",
          of_superuser ? request.of_superuser : request.of_others);
}

// Sets a request flag of the process, as a signal would. False: there is no such process.
bool Ask(int32_t pid, const Request& request) {
  const ProcessTable& table = shared_memory->processes;
  for (ProcNumber n = kPostmasterProc + 1; n < table.count; n++) {
    ProcSlot& slot = table.slots[n];
    ProcessKind kind = slot.kind.load();
    if (kind == ProcessKind::kUnused || pid == 0 || slot.pid.load() != pid) continue;
    // The io worker serves everybody: it is stopped with the server, not by a client.
    if (kind == ProcessKind::kIoWorker) return false;
    RequireMayEnd(slot, request);
    (slot.*request.flag).store(1, std::memory_order_relaxed);
    SetLatch(&slot.latch);
    return true;
  }
  return false;
}

void AskEach(const KernelCall& call, const Request& request) {
  ForEachRow(call, [&](size_t i) {
    call.out->Data<uint8_t>()[i] = Ask(call.args[0]->At<int32_t>(i), request);
  });
}

void CancelBackends(const KernelCall& call) {
  AskEach(call, kCancel);
}
void TerminateBackends(const KernelCall& call) {
  AskEach(call, kTerminate);
}

void SleepSeconds(double seconds) {
  constexpr int kStepMs = 1000;  // the client's end and a timeout are looked at this often
  int64_t until_us = MonotonicUs() + static_cast<int64_t>(seconds * 1e6);
  for (;;) {
    ResetLatch(&my_proc->latch);
    CheckForInterrupts();
    int64_t left_us = until_us - MonotonicUs();
    if (left_us <= 0) return;
    if (statement_deadline_us != 0)
      left_us = std::min(left_us, std::max<int64_t>(0, statement_deadline_us - MonotonicUs()));
    pollfd client{client_socket, POLLRDHUP, 0};
    WaitLatch(&my_proc->latch, {&client, client_socket >= 0 ? size_t{1} : 0},
              static_cast<int>(std::min<int64_t>(left_us / 1000 + 1, kStepMs)),
              WaitEvent::kPgSleep);
    if (client.revents != 0) Throw(sqlstate::kConnectionFailure, "connection to client lost");
  }
}

void Sleep(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    SleepSeconds(call.args[0]->At<double>(i));
    call.out->Data<std::string_view>()[i] = {};
  });
}

constexpr Kernel kKernels[] = {
    {2171, "pg_cancel_backend", true, CancelBackends},
    {2096, "pg_terminate_backend", true, TerminateBackends},
    {2626, "pg_sleep", true, Sleep},
};

}  // namespace

void RegisterServerKernels() {
  static const auto* all = [] {
    auto* kernels = new std::vector<Kernel>(std::begin(kKernels), std::end(kKernels));
    for (std::span<const Kernel> more :
         {CatalogKernels(), DefinitionKernels(), TextKernelsWithCatalog(), SequenceKernels()})
      kernels->insert(kernels->end(), more.begin(), more.end());
    return kernels;
  }();
  RegisterKernels(*all);
}

}  // namespace sluice
