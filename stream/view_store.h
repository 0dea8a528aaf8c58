// The durable state of all live views: one LMDB environment in DIR/views, mapped into every process
// that reads views. One process writes (the view worker); one write transaction is one *epoch*.
//
// Open it after fork only, once a process. A reader's snapshot is one epoch: everything it sees,
// rows, progress and the feeding half's own records alike, was committed together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "executor/row_source.h"
#include "types/column.h"

typedef struct MDB_env MDB_env;
typedef struct MDB_txn MDB_txn;

namespace sluice {

struct ViewStoreOptions {
  bool writer = false;  // creates the directory and files where they are missing
  // Address range to reserve at first; the file is as large as its data. The writer doubles it when
  // half of it is used, readers follow.
  size_t map_bytes = size_t{64} << 30;
  uint32_t readers_max = 16384;  // one a process that has read; 64 bytes each
};

struct StoredColumn {
  std::string name;
  Oid type = kInvalidOid;
  int32_t typmod = -1;
  Oid collation = kInvalidOid;
};

enum class StoredRelationKind : uint8_t { kSource, kView };

// Of a view, as DESIGN.md's section 10 has it; a source is kCreating or kCreated.
//   kCreating: some edge has not delivered all of its input's rows yet.
//   kCaughtUp: all have, but an input is not kCreated.
//   kCreated:  complete: what a recomputation over its sources would give.
//   kFailed:   stopped by an error (RelationInfo::failure); its rows no longer change.
enum class RelationState : uint8_t { kCreating, kCaughtUp, kCreated, kFailed };

// An index on a view: its columns are the view's, by number. `cursor`: where building it is.
struct StoredIndex {
  Oid oid = kInvalidOid;
  std::vector<int> columns;
  bool complete = false;
  std::string cursor = {};
};

// A stored relation: a bag of rows in key order. keyed: no two rows have the same key at a time.
//   keyed:   the key is the key columns in an order-preserving encoding, of a source and what only
//            filters and projects it behind the shard's number; or of columns that the view does
//            not show (no key_columns then).
//   keyless: the row itself is the key and is stored with its multiplicity.
struct RelationInfo {
  Oid oid = kInvalidOid;  // the catalog's
  StoredRelationKind kind = StoredRelationKind::kSource;
  std::vector<StoredColumn> columns;
  bool keyed = false;
  bool by_shard = false;  // keys begin with the shard's number
  std::vector<int> key_columns;
  std::vector<Oid> inputs;  // of a view: each once
  RelationState state = RelationState::kCreating;
  // A view that shows another relation's rows as they are has none of its own: whose they are.
  Oid storage = kInvalidOid;
  uint64_t rows = 0;             // keys, not multiplicities
  std::optional<Error> failure;  // kFailed
  std::string definition;        // of a view: the caller's (its SQL and settings), opaque here
  std::string plan_fingerprint;  // of a view: operators' state fits this plan only
  std::vector<StoredIndex> indexes;
};

// Where to read on in a view's kept changes.
struct ChangePlace {
  uint64_t epoch = 0;
  uint32_t number = 0;
};

// How far a view has read one of its inputs.
struct EdgeInfo {
  Oid view, input;
  bool at_end;
  uint64_t rows_delivered;
};

// One epoch to read. Cheap to make. Holding it keeps the store from reusing pages that later epochs
// free, so hold it for a statement, not for a session.
class ViewSnapshot {
 public:
  ~ViewSnapshot();
  ViewSnapshot(const ViewSnapshot&) = delete;
  ViewSnapshot& operator=(const ViewSnapshot&) = delete;

  uint64_t epoch() const;
  std::optional<RelationInfo> Relation(Oid relation) const;
  std::vector<RelationInfo> Relations() const;
  std::vector<EdgeInfo> Edges(const RelationInfo& view) const;
  // Throws what a read of the relation must raise: its own or an upstream view's failure, or the
  // error of an expression on a row that is still there. 55000 while it isn't kCreated.
  void CheckReadable(Oid relation) const;
  // `columns`: by name, in output order. Rows of multiplicity n come n times. The scan must not
  // outlive the snapshot. Restrict()ed to values of the first key columns, it reads only those
  // keys; else, where there is `index`, and to values of its first columns, those rows.
  std::unique_ptr<RowSource> Scan(Oid relation, std::span<const std::string_view> columns,
                                  Oid index = kInvalidOid) const;
  // Subscriptions. The epoch after which the view's changes are kept; nullopt: they are not.
  std::optional<uint64_t> ChangesKeptAfter(Oid view) const;
  // Changes kept, in order, from `place` on, which moves on; true: there may be more. The rows are
  // RowCodec's over the view's columns.
  bool ReadChanges(
      Oid view, size_t bytes_max, ChangePlace* place,
      const std::function<void(uint64_t epoch, int64_t weight, std::string_view row)>& fn) const;
  // The feeding half's records (Epoch::Put).
  std::optional<std::string> Get(std::string_view key) const;
  void ForEach(std::string_view prefix,
               const std::function<void(std::string_view key, std::string_view value)>& fn) const;

 private:
  friend class ViewStore;
  struct Impl;
  explicit ViewSnapshot(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class ViewStore {
 public:
  // Errors: 58030, 53100; a reader gets 55000 while no writer has made it yet.
  static Result<std::unique_ptr<ViewStore>> Open(const std::string& directory,
                                                 const ViewStoreOptions& options);
  ~ViewStore();

  // The newest epoch. Throws 53400 when the reader table is full even after dead readers were
  // cleared out of it.
  std::unique_ptr<ViewSnapshot> Snapshot();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit ViewStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
