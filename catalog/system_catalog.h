// The rows that Postgres's system catalogs have from the start (catalog/data/pg_*.tsv), as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Walks the rows of one catalog; the fields are its columns, all of them, in order.
class SystemRows {
 public:
  explicit SystemRows(std::string_view text) : rest_(text) {}
  bool Next();
  size_t size() const { return fields_.size(); }
  // As it is in the file: right as it stands for names and numbers.
  std::string_view Raw(size_t field) const { return fields_[field]; }
  std::optional<std::string> Value(size_t field) const;  // nullopt: NULL

 private:
  std::string_view rest_;
  std::vector<std::string_view> fields_;
};

// No rows for a catalog that starts empty.
SystemRows SystemRowsOf(std::string_view table);

}  // namespace sluice
