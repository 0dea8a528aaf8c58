// A program for tests: damages one stored row of a view, as a broken disk or a bug would. The
// server must be down.
//
//   damage_view DIRECTORY OID drop|copy    drops the first row, or writes it over the second
#include <cstdio>
#include <string>

#include "stream/store_record.h"
#include "stream/stored_relation.h"

namespace sluice {
namespace {

int Main(const std::string& directory, const std::string& oid, const std::string& how) {
  ViewStoreOptions options;
  options.writer = true;
  std::unique_ptr<ViewStore> store = ViewStore::Open(directory, options).OrThrow();
  StoreTransaction transaction;
  CheckLmdb(store->impl().BeginTransaction(0, &transaction.txn), "write");
  LmdbTable meta(&transaction, kMetaTable, false);
  uint64_t sequence;
  RelationInfo view =
      LoadInfo(meta.Get(RelationKey(static_cast<Oid>(std::stoul(oid)))).value(), &sequence);
  LmdbTable rows(&transaction, RowTableName(view), false);
  std::string first, second, value;
  {
    LmdbCursor cursor(rows);
    if (!cursor.First()) return 1;
    first = cursor.key();
    value = cursor.value();
    if (!cursor.Next()) return 1;
    second = cursor.key();
  }
  if (how == "drop")
    rows.Delete(first);
  else
    rows.Put(second, value);
  CheckLmdb(mdb_txn_commit(transaction.txn), "write");
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return sluice::Main(argv[1], argv[2], argv[3]);
  } catch (const sluice::QueryError& error) {
    fprintf(stderr, "%s\n", error.error.message.c_str());
    return 1;
  }
}
