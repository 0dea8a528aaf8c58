// Whatever bytes a client sends, the readers of its messages answer with a message, with "more is
// needed", or with 08P01; they never read past the end, and their memory follows the bytes that
// came.
#include "common/assert.h"
#include "wire/message.h"

namespace {

using namespace sluice;

// Reads a body the way the session does for each message type.
void ReadBody(char type, BodyReader body) {
  switch (type) {
    case 0: {
      body.Int<int32_t>();
      for (std::string_view name; !(name = body.CString()).empty();) body.CString();
      break;
    }
    case 'P': {
      body.CString();
      body.CString();
      for (int left = body.Int<int16_t>(); left > 0; left--) body.Int<uint32_t>();
      break;
    }
    case 'B': {
      body.CString();
      body.CString();
      for (int left = body.Int<int16_t>(); left > 0; left--) body.Int<int16_t>();
      for (int left = body.Int<uint16_t>(); left > 0; left--) {
        auto length = body.Int<int32_t>();
        if (length >= 0)
          SLUICE_ASSERT(body.Bytes(static_cast<size_t>(length)).size() ==
                        static_cast<size_t>(length));
      }
      for (int left = body.Int<int16_t>(); left > 0; left--) body.Int<int16_t>();
      break;
    }
    case 'D':
    case 'C':
      body.Int<char>();
      body.CString();
      break;
    case 'E':
      body.CString();
      body.Int<int32_t>();
      break;
    default:
      body.CString();
      break;
  }
  body.ExpectEnd();
}

}  // namespace

// The first byte says how the rest is cut into receipts, and whether a start-up packet comes first.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool startup = (data[0] & 1) != 0;
  size_t piece = 1 + data[0] / 2;
  MessageReader reader;
  size_t fed = 0, taken = 0;
  try {
    while (fed < bytes.size()) {
      size_t room;
      char* to = reader.Buffer(&room);
      SLUICE_ASSERT(room > 0 && room < (1 << 20));
      size_t now = std::min({piece, room, bytes.size() - fed});
      std::memcpy(to, bytes.data() + fed, now);
      reader.Commit(now);
      fed += now;
      while (auto message = reader.Take(startup)) {
        taken += message->body.size() + (startup ? 4 : 5);
        SLUICE_ASSERT(taken <= fed);
        try {
          ReadBody(message->type, BodyReader(message->body));
        } catch (const QueryError& e) {
          SLUICE_ASSERT(e.error.state == sqlstate::kProtocolViolation);
        }
        startup = false;
      }
    }
  } catch (const QueryError& e) {
    SLUICE_ASSERT(e.error.state == sqlstate::kProtocolViolation);
  }
  return 0;
}
