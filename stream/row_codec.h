// A row as compact bytes, as the store has it:
//
//   [null bitmap][each value that is not NULL: fixed width as it lies in memory, or length and
//   bytes]
//
// The same row always has the same bytes, so they can serve as its key.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/column_buffer.h"
#include "types/column.h"

namespace sluice {

void AppendVarint(uint64_t value, std::string* out);
// Reads the front of *from and moves it on. XX001 on damaged bytes.
uint64_t TakeVarint(std::string_view* from);
std::string_view TakeBytes(size_t count, std::string_view* from);

class RowCodec {
 public:
  explicit RowCodec(std::span<const Oid> types);

  std::span<const Oid> types() const { return types_; }
  void Append(std::span<const Column> columns, size_t row, std::string* out) const;
  // Row `row` of `to`; kBytes values are views of `bytes`. XX001 on damaged bytes.
  void Decode(std::string_view bytes, size_t row, BatchBuffer* to) const {
    Decode(bytes, row, {}, to);
  }
  // Stored column c goes to column place[c] of `to`, or nowhere (-1).
  void Decode(std::string_view bytes, size_t row, std::span<const int> place,
              BatchBuffer* to) const;

 private:
  std::vector<Oid> types_;
  std::vector<uint32_t> widths_;  // 0: kBytes
};

}  // namespace sluice
