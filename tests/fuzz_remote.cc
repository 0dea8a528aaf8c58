// Fuzzer of everything that a shard may send: framing, messages, the connection's state machine.
#include "fdw/parse_harness.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sluice::ParseHarness harness;
  harness.Run({data, size});
  return 0;
}
