// How failures travel. shm/ and fdw/ return Result; in a backend or worker one QueryError ends the
// query and is caught once, in the session loop; between processes only an ErrorRecord travels.
#pragma once

#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/sqlstate.h"

namespace sluice {

// The fields of an ErrorResponse. `position` counts characters of the client's query text from 1;
// 0 means none.
struct Error {
  SqlState state = sqlstate::kInternalError;
  std::string message;
  std::string detail;
  std::string hint;
  std::string context;
  int position = 0;
  std::string schema, table, column, datatype, constraint;

  Error& Detail(std::string text) {
    detail = std::move(text);
    return *this;
  }
  Error& Hint(std::string text) {
    hint = std::move(text);
    return *this;
  }
  Error& At(int position_chars) {
    position = position_chars;
    return *this;
  }
};

template <typename... Args>
Error MakeError(SqlState state, fmt::format_string<Args...> format, Args&&... args) {
  Error error;
  error.state = state;
  error.message = fmt::format(format, std::forward<Args>(args)...);
  return error;
}

class QueryError : public std::exception {
 public:
  explicit QueryError(Error e) : error(std::move(e)) {}
  const char* what() const noexcept override { return error.message.c_str(); }

  Error error;
};

template <typename... Args>
[[noreturn]] void Throw(SqlState state, fmt::format_string<Args...> format, Args&&... args) {
  throw QueryError(MakeError(state, format, std::forward<Args>(args)...));
}

// What Sluice does not do: SQLSTATE 0A000, always with the name of the refused thing.
template <typename... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw QueryError(MakeError(sqlstate::kFeatureNotSupported, format, std::forward<Args>(args)...));
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}
  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  Error& error() { return std::get<Error>(state_); }
  const Error& error() const { return std::get<Error>(state_); }
  // The value, or the error as a QueryError.
  T OrThrow() && {
    if (!ok()) throw QueryError(std::move(error()));
    return std::move(value());
  }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

// An Error as plain bytes for shared memory; longer texts are cut at a character boundary.
struct ErrorRecord {
  SqlState state;
  int32_t position;
  char message[1024];
  char detail[512];
  char hint[512];
  char context[256];
  char schema[64], table[64], column[64], datatype[64], constraint[64];

  void Store(const Error& error);
  Error Load() const;
};

}  // namespace sluice
