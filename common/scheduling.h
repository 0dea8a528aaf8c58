// What this process asks of the kernel's scheduler.
#pragma once

namespace sluice {

// Asks for short time slices (Linux 6.12 and later: sched_setattr's runtime of a normal task). The
// process gets no more CPU than before, but when it wakes it should not have to wait for the end of
// a busy neighbour's slice: rows pass through several processes, and each hop would wait. Children
// inherit it. Where the kernel does not know it, nothing changes.
void RequestShortTimeSlices();

}  // namespace sluice
