// The shard connections that are lent to this session (shm/lease.h): one a pool at most.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "fdw/borrowed_connection.h"
#include "shm/query_arena.h"
#include "shm/stream.h"

namespace sluice {

class LeaseSet {
 public:
  LeaseSet() = default;
  ~LeaseSet();  // gives all back
  LeaseSet(const LeaseSet&) = delete;
  LeaseSet& operator=(const LeaseSet&) = delete;

  // What a ConnectionSpec is made from. As long as that is the same, the spec needs not be made
  // again to find its connection.
  struct Origin {
    Oid server;
    std::shared_ptr<const Catalog> catalog;
    uint64_t settings_version;
    std::string_view user;
  };
  struct Found {
    BorrowedConnection* connection;
    std::string_view server_name;
  };
  // The connection of this pool, prepared for these settings, if it is lent and can be used. Null
  // without a spec: there is none, or it needs the spec.
  std::optional<Found> Find(const Origin& origin);
  std::optional<Found> Find(const Origin& origin, const ConnectionSpec& spec);
  // For a transaction that is to run there: nobody else finds it, and it is not given back, until
  // Release. What is left on it then must be over.
  void Hold(BorrowedConnection* connection) { connection->Hold(); }
  void Release(BorrowedConnection* connection);
  // Whether it is prepared for these settings.
  bool Suits(const BorrowedConnection* connection, const Origin& origin,
             const std::function<const ConnectionSpec*()>& make_spec);
  // The io worker goes on with the transaction, as the pin's, before it takes the next request.
  void HandOver(BorrowedConnection* connection, uint64_t pin);
  // For a stream that is to be opened now: what makes the io worker lend its connection afterwards
  // (Stream::lease). Null where there is nothing to be had.
  Lease* Want(const ConnectionSpec& spec);
  // Gives back what broke, but of a transaction.
  void DropUnusable();
  // Gives back what no statement is running on.
  void GiveBackIdle();
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string pool_key, session_setup, server_name;
    Lease* lease;
    std::unique_ptr<BorrowedConnection> connection;
    // Of the spec that it was last found by.
    Oid server = kInvalidOid;
    std::shared_ptr<const Catalog> catalog;
    uint64_t settings_version = 0;
    std::string user;
  };
  Entry* EntryOf(const BorrowedConnection* connection);
  bool OpenSocket();
  UniqueFd TakeDescriptor(const Lease* lease);
  void ReceiveDescriptors();

  SharedBlocks blocks_;
  Arena arena_{blocks_, 16 * 1024};
  std::vector<Entry> entries_;
  UniqueFd socket_;  // where descriptors come in
  sockaddr_un address_{};
  uint32_t address_bytes_ = 0;
  std::vector<std::pair<Lease*, UniqueFd>> received_;
  bool recalled_ = false;  // while some were held
};

}  // namespace sluice
