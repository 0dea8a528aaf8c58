#include "postmaster/lease_set.h"

#include <sys/socket.h>

#include "common/assert.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

constexpr size_t kLeasesMax = 64;

LeaseSet* my_leases = nullptr;

}  // namespace

LeaseSet::~LeaseSet() {
  on_leases_recalled = nullptr;
  my_leases = nullptr;
  HoldInterrupts hold;
  for (Entry& entry : entries_) entry.connection.reset();
  // The io worker must have let go before the leases' memory is freed.
  for (Entry& entry : entries_) {
    for (;;) {
      ResetLatch(&my_proc->latch);
      LeaseState state = entry.lease->state.load(std::memory_order_acquire);  // L3
      if (state == LeaseState::kNone) break;
      // What is lent but was never used goes the same way.
      if (state == LeaseState::kLent) BorrowedConnection(entry.lease, UniqueFd());
      WaitLatch(&my_proc->latch, {}, -1, WaitEvent::kLeaseReturn);
    }
  }
}

// A datagram socket with a name that the kernel chooses.
bool LeaseSet::OpenSocket() {
  if (socket_.valid()) return true;
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int on = 1;
  address_.sun_family = AF_UNIX;
  socklen_t size = sizeof address_;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(sa_family_t)) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address_), &size) != 0)
    return false;
  address_bytes_ = size;
  socket_ = std::move(fd);
  return true;
}

// Takes in what has come. Anyone on this machine can send to the socket: only the io worker's word
// counts.
void LeaseSet::ReceiveDescriptors() {
  int32_t io_worker =
      shared_memory->processes.slots[kIoWorkerProc].pid.load(std::memory_order_relaxed);
  for (;;) {
    Lease* lease = nullptr;
    iovec data{&lease, sizeof(Lease*)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) return;
    UniqueFd fd;
    int32_t sender = 0;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != SOL_SOCKET) continue;
      if (part->cmsg_type == SCM_RIGHTS) {
        int received;
        std::memcpy(&received, CMSG_DATA(part), sizeof received);
        fd.Reset(received);
      } else if (part->cmsg_type == SCM_CREDENTIALS) {
        ucred credentials;
        std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
        sender = credentials.pid;
      }
    }
    if (sender == io_worker && fd.valid() && got == sizeof(Lease*))
      received_.emplace_back(lease, std::move(fd));
  }
}

// The newest that came for this lease.
UniqueFd LeaseSet::TakeDescriptor(const Lease* lease) {
  ReceiveDescriptors();
  UniqueFd fd;
  for (auto& [of, received] : received_)
    if (of == lease) fd = std::move(received);
  std::erase_if(received_, [&](const auto& entry) { return entry.first == lease; });
  return fd;
}

std::optional<LeaseSet::Found> LeaseSet::Find(const Origin& origin) {
  for (Entry& entry : entries_) {
    if (entry.server != origin.server || entry.catalog != origin.catalog ||
        entry.settings_version != origin.settings_version || entry.user != origin.user ||
        entry.connection == nullptr || entry.connection->held())
      continue;
    if (entry.connection->CheckIdle()) return Found{entry.connection.get(), entry.server_name};
    entry.connection.reset();
  }
  return std::nullopt;
}

std::optional<LeaseSet::Found> LeaseSet::Find(const Origin& origin, const ConnectionSpec& spec) {
  for (Entry& entry : entries_) {
    if (entry.pool_key != spec.pool_key) continue;
    if (entry.connection == nullptr) {
      if (entry.lease->state.load(std::memory_order_acquire) != LeaseState::kLent)  // L3
        return std::nullopt;
      // Without its descriptor it is given back at once: it looks unusable.
      entry.connection =
          std::make_unique<BorrowedConnection>(entry.lease, TakeDescriptor(entry.lease));
    }
    if (entry.connection->held()) return std::nullopt;
    if (entry.session_setup == spec.session_setup && entry.connection->CheckIdle()) {
      entry.server = origin.server;
      entry.catalog = origin.catalog;
      entry.settings_version = origin.settings_version;
      entry.user = origin.user;
      entry.server_name = spec.server_name;
      return Found{entry.connection.get(), entry.server_name};
    }
    entry.connection.reset();
    return std::nullopt;
  }
  return std::nullopt;
}

LeaseSet::Entry* LeaseSet::EntryOf(const BorrowedConnection* connection) {
  auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.connection.get() == connection; });
  SLUICE_ASSERT(found != entries_.end());
  return &*found;
}

void LeaseSet::Release(BorrowedConnection* connection) {
  connection->Release();
  Entry* entry = EntryOf(connection);
  if (!connection->usable() || connection->in_transaction() || recalled_) entry->connection.reset();
}

bool LeaseSet::Suits(const BorrowedConnection* connection, const Origin& origin,
                     const std::function<const ConnectionSpec*()>& make_spec) {
  Entry* entry = EntryOf(connection);
  bool same = entry->catalog == origin.catalog && entry->user == origin.user &&
              entry->settings_version == origin.settings_version;
  if (same) return true;
  const ConnectionSpec* spec = make_spec();
  if (entry->pool_key != spec->pool_key || entry->session_setup != spec->session_setup)
    return false;
  entry->catalog = origin.catalog;
  entry->user = origin.user;
  entry->settings_version = origin.settings_version;
  return true;
}

void LeaseSet::HandOver(BorrowedConnection* connection, uint64_t pin) {
  connection->GiveBackTo(pin);
  EntryOf(connection)->connection.reset();
}

Lease* LeaseSet::Want(const ConnectionSpec& spec) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.pool_key == spec.pool_key; });
  if (found == entries_.end()) {
    if (entries_.size() == kLeasesMax || !OpenSocket()) return nullptr;
    auto* lease = arena_.New<Lease>();
    lease->backend = my_proc_number;
    lease->address = address_;
    lease->address_bytes = address_bytes_;
    found = entries_.insert(entries_.end(), {std::string(spec.pool_key), {}, {}, lease, nullptr});
    my_leases = this;
    on_leases_recalled = [] { my_leases->GiveBackIdle(); };
  }
  if (found->lease->state.load(std::memory_order_acquire) != LeaseState::kNone)
    return nullptr;  // L3
  recalled_ = false;
  found->session_setup = spec.session_setup;
  return found->lease;
}

void LeaseSet::DropUnusable() {
  for (Entry& entry : entries_)
    if (entry.connection != nullptr && !entry.connection->usable() && !entry.connection->held())
      entry.connection.reset();
}

void LeaseSet::GiveBackIdle() {
  for (Entry& entry : entries_) {
    if (entry.connection == nullptr &&
        entry.lease->state.load(std::memory_order_acquire) == LeaseState::kLent)  // L3
      entry.connection =
          std::make_unique<BorrowedConnection>(entry.lease, TakeDescriptor(entry.lease));
    if (entry.connection == nullptr || entry.connection->busy()) continue;
    recalled_ |= entry.connection->held();
    if (!entry.connection->held()) entry.connection.reset();
  }
}

}  // namespace sluice
