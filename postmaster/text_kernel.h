// Kernels of catalog functions from functions of one row.
#pragma once

#include <optional>
#include <string>

#include "types/kernel_helpers.h"

namespace sluice {

// A kernel that gives text; kFunction(call, row) is a std::optional<std::string> (nullopt: NULL).
template <auto kFunction>
void TextOf(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    std::optional<std::string> text = kFunction(call, i);
    if (text)
      call.out->Data<std::string_view>()[i] = CopyResult(call, *text);
    else
      SetNull(call, i);
  });
}

inline void AlwaysNull(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) { SetNull(call, i); });
}

inline Oid OidArg(const KernelCall& call, size_t arg, size_t row) {
  return call.args[arg]->At<uint32_t>(row);
}

}  // namespace sluice
