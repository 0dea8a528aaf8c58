// The rows of the views that the server answers itself (catalog/virtual_tables.h has their
// columns).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

struct QuerySession;

// One row as text values, one a column of the view; nullopt is NULL.
using VirtualRow = std::span<const std::optional<std::string>>;
using VirtualRowSink = std::function<void(VirtualRow)>;

void ScanVirtualTable(const QuerySession& session, std::string_view name,
                      const VirtualRowSink& row);

}  // namespace sluice
