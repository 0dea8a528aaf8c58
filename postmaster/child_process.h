// What every forked child does first, and the page through which the postmaster tells children why
// they must quit. That page is not part of the shared memory that the crash rule throws away.
#pragma once

#include <cstdint>

#include "shm/process_table.h"
#include "shm/supervision.h"

namespace sluice {

extern Supervision* supervision;
void CreateSupervision();

int64_t PostgresNow();  // µs since 2000-01-01 UTC

// REQUIRES: just forked, signals blocked. Ties this process's life to the postmaster's (`parent`),
// installs the handlers (SIGTERM: terminate, SIGINT: cancel, SIGHUP: reload, SIGQUIT: end at once),
// attaches the slot and unblocks the signals. kNoProc: a child without a slot.
void InitChild(ProcNumber number, ProcessKind kind, int32_t parent);

// How long this process runs before others that wait may have their turn.
enum class TimeSlices { kUsual, kShort };
void UseTimeSlices(TimeSlices slices);

// Client backends: where SIGQUIT's handler sends the FATAL message that says why.
void SetQuitClient(int fd);
// Around a send to the client, which must not sleep: SIGQUIT is obeyed behind it, when it is known
// how much has left. `mid_message`: a message has left only in part, so nothing can be added.
void BeginSend();
void EndSend(bool mid_message);

[[noreturn]] void ExitChild(int status);  // no destructors: they belong to the postmaster

}  // namespace sluice
