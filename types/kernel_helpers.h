// Building kernels from functions of single values.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/error.h"
#include "types/kernel.h"

namespace sluice {

template <typename Fn, typename... Args>
inline auto InvokeOnValues(const KernelCall& call, const Args&... args) {
  if constexpr (std::is_invocable_v<Fn, const KernelCall&, const Args&...>)
    return Fn{}(call, args...);
  else
    return Fn{}(args...);
}

// Fn takes the values (and the KernelCall before them, if it wants), and returns the result.
template <typename Fn, typename Out, typename... Args, size_t... I>
void MapRows(const KernelCall& call, std::index_sequence<I...>) {
  Out* out = call.out->Data<Out>();
  const std::tuple<const Args*...> data{call.args[I]->Data<Args>()...};
  const size_t masks[sizeof...(Args) + 1] = {call.args[I]->mask..., 0};
  ForEachRow(call, [&](size_t i) {
    out[i] = static_cast<Out>(InvokeOnValues<Fn>(call, std::get<I>(data)[i & masks[I]]...));
  });
}

template <typename Fn, typename Out, typename... Args>
void Map(const KernelCall& call) {
  MapRows<Fn, Out, Args...>(call, std::index_sequence_for<Args...>());
}

// For cheap functions of two numbers: loops that the compiler can vectorise when all rows are
// wanted.
template <typename Fn, typename Out, typename A, typename B>
void MapFast(const KernelCall& call) {
  const Column &left = *call.args[0], &right = *call.args[1];
  if (call.rows != nullptr || (left.constant() && right.constant()))
    return Map<Fn, Out, A, B>(call);
  Out* __restrict out = call.out->Data<Out>();
  const A* a = left.Data<A>();
  const B* b = right.Data<B>();
  if (right.constant()) {
    const B value = *b;
    for (size_t i = 0; i < call.count; i++) out[i] = static_cast<Out>(Fn{}(a[i], value));
  } else if (left.constant()) {
    const A value = *a;
    for (size_t i = 0; i < call.count; i++) out[i] = static_cast<Out>(Fn{}(value, b[i]));
  } else {
    for (size_t i = 0; i < call.count; i++) out[i] = static_cast<Out>(Fn{}(a[i], b[i]));
  }
}

inline std::string_view CopyResult(const KernelCall& call, std::string_view text) {
  return call.context->arena->CopyString(text);
}

inline void SetNull(const KernelCall& call, size_t row) {
  call.out->nulls[row] = 1;
}

}  // namespace sluice
