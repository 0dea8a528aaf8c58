// How a stream's end is judged. A stream that did not end well is an error, never a short answer.
#pragma once

#include "common/error.h"
#include "shm/stream.h"

namespace sluice {

// To be called for a stream's kEnd slice. Returns if the stream gave all its rows; throws the
// shard's error otherwise.
void CheckStreamEnd(const Stream& stream);

// The error of a stream, with the server and the statement it came from.
Error ErrorOf(const Stream& stream);

}  // namespace sluice
