// What a statement reads, by its raw tree: the relations it names, the columns it may need, and the places in
// its text that must be rewritten to run over temporary tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/raw.h"

namespace sluice {

// A RangeVar that is not the name of a WITH query in its scope.
struct TableReference {
  std::string schema, name;  // schema empty: unqualified
  bool only = false;
  bool has_alias = false;
  int location = 0;          // byte offset in the whole query string
};

// schema.table.column or schema.table.*
struct QualifiedColumn {
  std::string schema, table;
  int location = 0;
};

struct StatementReferences {
  std::vector<TableReference> tables;
  std::vector<QualifiedColumn> qualified_columns;
  // Names that columns may be referred to by; all_columns: a star, a natural join or a whole row.
  std::vector<std::string> column_names;
  // Names written alone, and those of FROM items: what is both may be a whole row.
  std::vector<std::string> single_names, range_names;
  bool all_columns = false;
  // What must not run on a shard on a client's behalf, by name; empty: nothing.
  std::string obstacle;
};

StatementReferences FindReferences(const PgQuery__Node& statement);

// Rewrites of a text, and where positions of the result were in the original. Added in any order.
class TextRewrite {
 public:
  // original: the text; offset: its place in the string that locations count in.
  TextRewrite(std::string_view original, int offset) : original_(original), offset_(offset) {}
  void Replace(int location, int length, std::string with);
  std::string Result() const;
  void Shift(int by);  // all locations count from further before
  int OriginalOffset(int result_offset) const;  // in the string that locations count in

  // The end of the identifiers name.name… (`parts` of them) that start at `location`; and where the last
  // `keep` of them start. -1: not written as expected.
  int IdentifiersEnd(int location, int parts, int keep, int* kept_start) const;

 private:
  struct Piece {
    int location, length;
    std::string with;
  };
  std::string_view original_;
  int offset_;
  std::vector<Piece> pieces_;  // sorted by location
};

}  // namespace sluice
