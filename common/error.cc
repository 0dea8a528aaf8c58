#include "common/error.h"

#include <cstring>

namespace sluice {
namespace {

template <size_t N>
void StoreText(char (&to)[N], const std::string& from) {
  size_t length = std::min(from.size(), N - 1);
  // Never cut a UTF-8 sequence in two: step back over its continuation bytes.
  if (length < from.size())
    while (length > 0 && (static_cast<unsigned char>(from[length]) & 0xc0) == 0x80) length--;
  std::memcpy(to, from.data(), length);
  to[length] = 0;
}

}  // namespace

void ErrorRecord::Store(const Error& error) {
  state = error.state;
  position = error.position;
  StoreText(message, error.message);
  StoreText(detail, error.detail);
  StoreText(hint, error.hint);
  StoreText(context, error.context);
  StoreText(schema, error.schema);
  StoreText(table, error.table);
  StoreText(column, error.column);
  StoreText(datatype, error.datatype);
  StoreText(constraint, error.constraint);
}

Error ErrorRecord::Load() const {
  Error error;
  error.state = state;
  error.position = position;
  error.message = message;
  error.detail = detail;
  error.hint = hint;
  error.context = context;
  error.schema = schema;
  error.table = table;
  error.column = column;
  error.datatype = datatype;
  error.constraint = constraint;
  return error;
}

}  // namespace sluice
