#include "postmaster/activity.h"

#include <cstring>

#include "postmaster/child_process.h"

namespace sluice {
namespace {

template <size_t N>
void Store(char (&to)[N], std::string_view from) {
  size_t length = std::min(from.size(), N - 1);
  // Not in the middle of a UTF-8 sequence.
  if (length < from.size())
    while (length > 0 && (static_cast<unsigned char>(from[length]) & 0xc0) == 0x80) length--;
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

class ActivityWrite {
 public:
  ActivityWrite() { BeginActivityWrite(); }
  ~ActivityWrite() { EndActivityWrite(); }
};

}  // namespace

void ReportSession(std::string_view user, std::string_view database, std::string_view address,
                   int port) {
  ActivityWrite write;
  Store(my_proc->user, user);
  Store(my_proc->database, database);
  Store(my_proc->client_addr, address);
  my_proc->client_port = port;
}

void ReportApplicationName(std::string_view name) {
  ActivityWrite write;
  Store(my_proc->application_name, name);
}

void ReportQuery(std::string_view text, bool shown, int64_t started_at) {
  ActivityWrite write;
  my_proc->state = ActivityState::kActive;
  my_proc->query_start = my_proc->state_change = started_at;
  if (!shown) Store(my_proc->query, text);
}

void ReportState(ActivityState state, int64_t xact_start) {
  ActivityWrite write;
  if (my_proc->state != state) my_proc->state_change = PostgresNow();
  my_proc->state = state;
  my_proc->xact_start = xact_start;
}

}  // namespace sluice
