// The first packets of a connection, before it is known whether it will be a session.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

inline constexpr int32_t kProtocol3 = 3 << 16;
inline constexpr int32_t kCancelRequestCode = 80877102;
inline constexpr int32_t kSslRequestCode = 80877103;
inline constexpr int32_t kGssEncRequestCode = 80877104;

// Asks the backend `pid` to cancel its statement, if `key` is its key. Nothing is told to who asks.
void CancelBackend(int32_t pid, int32_t key);
// The body of a CancelRequest packet, behind the code.
void HandleCancelRequest(std::string_view body);

}  // namespace sluice
