#include "shm/wait_event.h"

namespace sluice {
namespace {

constexpr WaitEventName kNames[] = {
#define X(enumerator, type, name, description) {type, name, description},
    SLUICE_WAIT_EVENTS(X)
#undef X
};

}  // namespace

const WaitEventName& NameOf(WaitEvent event) {
  auto index = static_cast<uint32_t>(event);
  return kNames[index < std::size(kNames) ? index : 0];
}

}  // namespace sluice
