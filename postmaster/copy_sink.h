// Rows as the CopyData messages of COPY … TO STDOUT.
#pragma once

#include "postmaster/row_sink.h"
#include "wire/copy_format.h"

namespace sluice {

class CopySink : public RowSink {
 public:
  CopySink(ClientSocket* client, size_t columns, const CopyOptions& options,
           const SessionSettings& settings);
  // CopyOutResponse, and what comes before the first row.
  void Begin(std::span<const std::string_view> names);
  void Rows(const Batch& batch, size_t from, size_t to) override;
  // DataRows whose columns are all in text format, or all in binary format for a binary COPY.
  void Messages(std::string_view messages) override;
  void CopyData(uint16_t stream, std::string_view messages) override;
  void BeforeWait() override { client_->Flush(); }
  ClientSocket* client() override { return client_; }
  void End();
  // How many of the CopyData messages held no row.
  uint64_t rowless_messages() const { return rowless_messages_; }

 private:
  template <typename AppendFields>
  void AppendMessage(AppendFields&& append_fields);
  void AppendRow(const Batch& batch, size_t row, std::string* out);
  void AppendField(size_t column, std::string_view text, std::string* out);
  void TranscodeText(std::string_view body, std::string* out);
  void SendTuples(std::string_view messages);
  void SendFirstTuple(std::string_view body);

  ClientSocket* client_;
  size_t columns_;
  CopyOptions options_;
  const SessionSettings& settings_;
  std::string value_;        // one field's text
  std::vector<bool> begun_;  // binary CopyData: by stream, whether its header is behind us
  uint64_t rowless_messages_ = 0;
};

}  // namespace sluice
