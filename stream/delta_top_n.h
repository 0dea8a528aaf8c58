// ORDER BY … LIMIT, and DISTINCT ON (the first row of each group).
//
//   d top(R) = − top(R)[g] + top(R + dR)[g]     for each group g touched; LIMIT has one group
//
// The store has all rows in order: sort key, then the row itself, which settles ties. So the first
// rows of a group are read from its start, offset + limit of them a step and group.
#pragma once

#include <map>

#include "optimizer/plan.h"
#include "stream/delta_operator.h"
#include "stream/key_encoding.h"
#include "stream/row_codec.h"

namespace sluice {

class DeltaTopN : public DeltaOperator {
 public:
  struct Definition {
    const Plan* plan;           // whose output the rows have
    std::vector<SortKey> keys;  // targets are columns of the rows
    size_t group_keys = 0;      // the first so many say the group
    int64_t limit = INT64_MAX, offset = 0;
    bool with_ties = false;
  };
  DeltaTopN(Definition definition, ViewContext& context);
  // Of a Limit or a Distinct over sorted rows; refuses an order that keys cannot show.
  static Definition Of(const LimitPlan& plan, ViewContext& context);
  static Definition Of(const DistinctPlan& plan);

  void Push(size_t, const DeltaBatch& batch) override;
  void Finish() override;

 private:
  using Rows = std::map<std::string, int64_t>;  // row → multiplicity
  struct Entry {
    std::string key;  // whole: sort key and row
    size_t sort_bytes;
    int64_t count;
    std::string_view row() const { return std::string_view(key).substr(sort_bytes); }
    std::string_view sort_key() const { return std::string_view(key).substr(0, sort_bytes); }
  };

  std::string SortKeyOf(std::span<const Column> columns, size_t row, size_t* group_bytes) const;
  void Add(const std::string& sort_key, std::string_view row, int64_t weight);
  Rows First(std::string_view group) const;
  // Calls `fn` for the entries of a group in order until it returns false.
  template <typename Fn>
  void ForEach(std::string_view group, Fn&& fn) const;
  static Entry Unpack(std::string_view stored, std::string_view value);

  Definition definition_;
  KeyEncoder encoder_;
  RowCodec codec_;
  LmdbTable table_;
  std::map<std::string, Rows> touched_;  // group → what was first before the step
  DeltaOutput output_;
};

}  // namespace sluice
