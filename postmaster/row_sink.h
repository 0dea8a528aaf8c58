// Where a query's rows go: DataRow messages to the client, COPY data, or strings for the server's
// own use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimizer/plan.h"
#include "postmaster/client_socket.h"
#include "types/column.h"
#include "types/kernel.h"

namespace sluice {

class RowSink {
 public:
  virtual ~RowSink() = default;
  // Rows from..to of the batch; the first columns are the client's.
  virtual void Rows(const Batch& batch, size_t from, size_t to) = 0;
  // The same as DataRow messages, in the formats that the plan was made for (pass-through).
  virtual void Messages(std::string_view messages) = 0;
  // CopyData messages of one of the statement's streams (PlannedStatement::copy_out).
  virtual void CopyData(uint16_t stream, std::string_view messages);
  // The next rows are not here yet: what was given before should not wait for them.
  virtual void BeforeWait() {}
  // The client that gets them; null: nobody whom one would have to wait for.
  virtual ClientSocket* client() { return nullptr; }
};

// The format of column `i` by Bind's rule: none = text, one for all, or one a column.
int16_t FormatOf(std::span<const int16_t> formats, size_t i);
// Throws 0A000 if a binary format is asked for a type whose values are kept as text here.
void CheckFormats(std::span<const ResultColumn> columns, std::span<const int16_t> formats);

class DataRowSink : public RowSink {
 public:
  DataRowSink(ClientSocket* client, std::span<const ResultColumn> columns,
              std::span<const int16_t> formats, const SessionSettings& settings);
  void Rows(const Batch& batch, size_t from, size_t to) override;
  void Messages(std::string_view messages) override { client_->SendMessages(messages); }
  void BeforeWait() override { client_->Flush(); }
  ClientSocket* client() override { return client_; }

 private:
  void AppendRow(const Batch& batch, size_t row, std::string* out);

  ClientSocket* client_;
  const SessionSettings& settings_;
  std::vector<uint8_t> binary_;
};

// Collects text values: EXECUTE's arguments, and the like.
class TextSink : public RowSink {
 public:
  TextSink(size_t columns, const SessionSettings& settings)
      : columns_(columns), settings_(settings) {}
  void Rows(const Batch& batch, size_t from, size_t to) override;
  void Messages(std::string_view messages) override;

  std::vector<std::vector<std::optional<std::string>>> rows;

 private:
  size_t columns_;
  const SessionSettings& settings_;
};

// Counts rows and drops them: EXPLAIN ANALYZE, MOVE.
class CountingSink : public RowSink {
 public:
  void Rows(const Batch&, size_t, size_t) override {}
  void Messages(std::string_view) override {}
};

}  // namespace sluice
