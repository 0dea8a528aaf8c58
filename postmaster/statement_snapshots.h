// The snapshots of a statement whose parts are read one after the other: init plans first, then the
// rest. Each server gets one, taken under the commit gate like those of any read over several
// servers, and held by a pinned connection until the statement is over; what reads there runs on
// that connection. Where a part has several streams on a server, each has a connection of its own,
// which imports the first one's snapshot. All of them are taken at once, so that no statement holds
// connections while it waits for more.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "postmaster/running_query.h"

namespace sluice {

class StatementSnapshots {
 public:
  // Throws what a server answered.
  StatementSnapshots(const QuerySession& session, bool gate, std::span<const ServerStreams> servers,
                     Arena* arena);
  ~StatementSnapshots();
  StatementSnapshots(const StatementSnapshots&) = delete;
  StatementSnapshots& operator=(const StatementSnapshots&) = delete;

  // For a part's nth stream on the server; no pin for a server that was not asked for.
  StreamTransaction For(Oid server, uint32_t nth) const;
  // Stops what still runs there, because nobody wants it any more.
  void Cancel();

 private:
  std::vector<uint64_t> pins_;                        // the nth of every server
  std::map<Oid, std::string_view> import_by_server_;  // begins the others there
};

}  // namespace sluice
