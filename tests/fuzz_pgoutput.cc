// Fuzzer of logical replication: CopyData frames, replication frames, pgoutput's messages.
#include "common/error.h"
#include "stream/pgoutput.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static sluice::PgOutputMessage message;
  try {
    sluice::DecodePgOutput(bytes, &message);
  } catch (const sluice::QueryError&) {
  }
  try {
    sluice::CopyDataReader reader(bytes.data(), bytes.size());
    for (std::string_view body; reader.Next(&body);) {
      sluice::ReplicationFrame frame = sluice::DecodeReplicationFrame(body);
      if (!frame.keepalive) sluice::DecodePgOutput(frame.payload, &message);
    }
  } catch (const sluice::QueryError&) {
  }
  return 0;
}
