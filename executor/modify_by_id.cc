// UPDATE and DELETE of rows that were found here: by leaf and ctid. A row whose place changes is
// deleted there and inserted where it belongs.
#include "executor/column_buffer.h"
#include "executor/modify.h"

namespace sluice {
namespace {

enum ChildColumn : size_t { kLeafId, kCtid, kTableOid };

}  // namespace

// All rows are read first: the scans that lock them run in the same transaction as what writes
// them, and may lie on the same connection.
void Modify::RunById() {
  for (uint32_t t = 0; t < modify_.targets.size(); t++)
    targets_by_leaf_[modify_.targets[t].leaf] = t;
  RowStore all(modify_.children[0]->output, state_.context->work_mem_bytes,
               state_.context->temp_directory);
  Batch batch;
  for (child_->Next(&batch); batch.rows > 0; child_->Next(&batch)) {
    CheckForInterrupts();
    all.Append(batch);
  }
  for (all.Next(&batch); batch.rows > 0; all.Next(&batch)) WriteById(batch);
}

void Modify::WriteById(const Batch& batch) {
  size_t count = modify_.targets.size();
  std::vector<std::vector<uint32_t>> stay(count), move(count);
  std::span<const uint32_t> places;
  if (modify_.moves) places = Route(batch);
  for (uint32_t row = 0; row < batch.rows; row++) {
    uint32_t target = targets_by_leaf_.at(batch.columns[kLeafId].At<uint32_t>(row));
    if (modify_.moves) {
      std::string id = fmt::format("{} {} {}", target, batch.columns[kTableOid].At<uint32_t>(row),
                                   batch.columns[kCtid].At<std::string_view>(row));
      if (!moved_.insert(std::move(id)).second) continue;
      if (places[row] != target) {
        move[target].push_back(row);
        continue;
      }
    }
    stay[target].push_back(row);
  }
  // Rows may move to servers that no row was found on.
  std::vector<uint32_t> arriving;
  for (uint32_t row = 0; modify_.moves && row < batch.rows; row++)
    if (std::find(arriving.begin(), arriving.end(), places[row]) == arriving.end())
      arriving.push_back(places[row]);
  if (!arriving.empty()) JoinTargets(arriving, false);
  ChangeRows(batch, stay);
  if (modify_.moves) MoveRows(batch, move);
}

void Modify::ChangeRows(const Batch& batch, std::span<const std::vector<uint32_t>> rows_of) {
  constexpr size_t kIdColumns = 3;
  size_t step = RowWriter::RowsMax(modify_.value_columns.size() + kIdColumns), most = 0;
  for (const auto& rows : rows_of) most = std::max(most, rows.size());
  for (size_t from = 0; from < most; from += step) {
    std::vector<WriteStatement> statements;
    for (uint32_t t = 0; t < rows_of.size(); t++) {
      if (from >= rows_of[t].size()) continue;
      const ModifyTarget& place = modify_.targets[t];
      std::span<const uint32_t> rows(rows_of[t]);
      rows = rows.subspan(from, std::min(step, rows.size() - from));
      statements.push_back({t, &place, place.change_head, place.change_tail, modify_.value_columns,
                            modify_.value_types, rows, true});
    }
    bool returning = !modify_.output.empty();
    std::vector<uint64_t> written =
        writer_.Run(batch, statements, returning, returning, [&](size_t, const Batch& answer) {
          std::vector<uint32_t> rows(answer.rows);
          for (size_t i = 0; i < rows.size(); i++)
            rows[i] = static_cast<uint32_t>(answer.columns[0].At<int32_t>(i));
          Return(batch, rows, {answer.rows, answer.columns.subspan(1)});
        });
    for (uint64_t rows : written) count_ += rows;
  }
}

void Modify::MoveRows(const Batch& batch, std::span<const std::vector<uint32_t>> rows_of) {
  std::vector<std::vector<uint32_t>> arriving(modify_.targets.size());
  size_t step = RowWriter::RowsMax(std::max<size_t>(3, modify_.row_columns.size())), most = 0;
  for (const auto& rows : rows_of) most = std::max(most, rows.size());
  for (size_t from = 0; from < most; from += step) {
    std::vector<WriteStatement> statements;
    for (uint32_t t = 0; t < rows_of.size(); t++) {
      if (from >= rows_of[t].size()) continue;
      const ModifyTarget& place = modify_.targets[t];
      std::span<const uint32_t> rows(rows_of[t]);
      rows = rows.subspan(from, std::min(step, rows.size() - from));
      statements.push_back({t, &place, place.delete_head, place.delete_tail, {}, {}, rows, true});
    }
    // Only what was there to be taken away arrives elsewhere.
    writer_.Run(batch, statements, true, false, [&](size_t, const Batch& answer) {
      for (size_t i = 0; i < answer.rows; i++) {
        auto row = static_cast<uint32_t>(answer.columns[0].At<int32_t>(i));
        arriving[targets_of_rows_[row]].push_back(row);
      }
    });
  }
  bool returning = !modify_.output.empty();
  for (uint32_t t = 0; t < arriving.size(); t++) {
    const ModifyTarget& place = modify_.targets[t];
    for (size_t from = 0; from < arriving[t].size(); from += step) {
      std::span<const uint32_t> rows(arriving[t]);
      rows = rows.subspan(from, std::min(step, rows.size() - from));
      WriteStatement statement{
          t,   &place, place.insert_head, place.insert_tail, modify_.row_columns, modify_.row_types,
          rows};
      size_t next = 0;
      std::vector<uint64_t> written = writer_.Run(
          batch, std::span(&statement, 1), false, returning, [&](size_t, const Batch& answer) {
            if (next + answer.rows > rows.size())
              Throw(sqlstate::kInternalError, "a server returned more rows than were inserted");
            Return(batch, rows.subspan(next, answer.rows), answer);
            next += answer.rows;
          });
      if (written[0] != rows.size())
        Throw(sqlstate::kInternalError,
              "server \"{}\" took {} of {} rows that an UPDATE moves there", place.server_name,
              written[0], rows.size());
      count_ += written[0];
    }
  }
}

// RETURNING's rows: over the child's row and what was written for it.
void Modify::Return(const Batch& batch, std::span<const uint32_t> rows, const Batch& written) {
  BatchBuffer gathered(modify_.children[0]->output);
  for (size_t i = 0; i < gathered.size(); i++)
    GatherColumn(batch.columns[i], rows.data(), rows.size(), &gathered[i]);
  Batch outer;
  gathered.Show(rows.size(), &outer);
  arena_.Reset();
  std::vector<Column> columns(returning_.size());
  for (size_t i = 0; i < columns.size(); i++)
    columns[i] = returning_[i]->Evaluate(outer, &written, rows.size(), &arena_);
  rows_.Append({rows.size(), columns});
}

}  // namespace sluice
