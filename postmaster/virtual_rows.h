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

// A timestamptz as text that the view's column reads back; the zone's offset is part of it. 0:
// NULL.
std::optional<std::string> TimestampValue(int64_t at);

// sluice.transactions (transaction_rows.cc): those over several servers that are not carried out
// everywhere.
void ScanTransactions(const QuerySession& session, const VirtualRowSink& row);

}  // namespace sluice
