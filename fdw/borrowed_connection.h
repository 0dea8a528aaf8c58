// A shard's connection in a backend's hands (shm/lease.h): sends one statement, passes the rows of
// its answer on, one statement after the other. The other side of a stream's `lease`.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "fdw/remote_message.h"
#include "fdw/statement_cache.h"
#include "shm/lease.h"

namespace sluice {

struct BorrowedQuery {
  std::string_view server_name;
  std::string_view sql;
  std::span<const StreamParam> params;
  std::span<const int16_t> result_formats;
  bool prepare;
  int64_t silence_timeout_us;
  // Sent first, in the same batch: begins the transaction that the statement belongs to.
  std::string_view begin_sql = {};
  // Whether it may be run once more elsewhere if the connection is lost before it has answered.
  bool repeatable = true;
};

class BorrowedConnection {
 public:
  BorrowedConnection(Lease* lease, UniqueFd fd);
  // Gives it back: ready, or where a statement or a transaction was left in the middle, to be
  // cancelled and closed.
  ~BorrowedConnection();
  BorrowedConnection(const BorrowedConnection&) = delete;
  BorrowedConnection& operator=(const BorrowedConnection&) = delete;

  // Whether the shard still holds it open, as far as is known: a look at the socket, unless it has
  // just answered. Run tells where it did not.
  bool CheckIdle();
  bool busy() const { return busy_; }

  // Of a transaction: it may be left open between statements. The pin names it in case that it goes
  // on elsewhere: what is given back then is the pin's connection there, with whatever was begun.
  void Hold() { held_ = true; }
  void Release() { held_ = false; }
  bool held() const { return held_; }
  void GiveBackTo(uint64_t pin) { pin_ = pin; }
  bool in_transaction() const { return transaction_status_ != 'I'; }

  using RowReceiver = std::function<void(std::string_view messages)>;
  // Runs the statement to its end; returns the number of its rows. `rows` gets whole DataRow
  // messages; `before_wait` is called when the next are not here yet. Throws the shard's error, or
  // why the connection broke. After an exception it may be given back only (`usable()`).
  // nullopt: the connection ended before anything was said of the statement.
  std::optional<uint64_t> Run(const BorrowedQuery& query, const RowReceiver& rows,
                              const std::function<void()>& before_wait);
  // The same in two halves, so that several connections can work at once.
  void Start(const BorrowedQuery& query);
  std::optional<uint64_t> Finish(const BorrowedQuery& query, const RowReceiver& rows,
                                 const std::function<void()>& before_wait);
  const std::string& command_tag() const { return command_tag_; }  // of the last statement
  bool usable() const { return !broken_ && !busy_; }

 private:
  bool LookAtIdle();
  bool Begins(const BorrowedQuery& query) const {
    return !query.begin_sql.empty() && transaction_status_ == 'I';
  }
  void Request(const BorrowedQuery& query);
  void TakeName(RequestWriter* request);
  bool Send(const BorrowedQuery& query);
  bool ReadAnswer(const BorrowedQuery& query, const RowReceiver& rows,
                  const std::function<void()>& before_wait);
  size_t Receive(const BorrowedQuery& query, size_t wanted_bytes,
                 const std::function<void()>& before_wait);
  void Wait(const BorrowedQuery& query, short events);
  void Handle(const BorrowedQuery& query, char type, std::string_view body);
  bool IsStale() const;
  [[noreturn]] void Break(const BorrowedQuery& query, SqlState state, std::string_view what,
                          std::string detail = {});

  Lease* const lease_;
  UniqueFd fd_;
  StatementCache statements_;
  uint32_t statements_used_ = 0;
  std::string out_;
  std::string in_;  // its size is its room
  size_t begin_ = 0, end_ = 0;
  std::vector<std::string> free_names_;  // of statements that are not prepared after all
  bool held_ = false;
  uint64_t pin_ = 0;
  char transaction_status_ = 'I';  // as ReadyForQuery said last

  // The running statement.
  bool busy_ = false;
  bool broken_ = false;
  bool ready_ = false;          // ReadyForQuery came
  bool answered_ = false;       // something else than an error came
  bool out_is_simple_ = false;  // sent by the simple protocol
  bool just_sent_ = false;      // nothing can be here yet
  std::optional<RemoteError> error_;
  std::string statement_key_, statement_name_;
  bool parse_sent_ = false;
  bool sent_ = false;
  bool begins_ = false;  // begin_sql was sent …
  bool begun_ = false;   // … and has been answered
  std::string command_tag_;
  uint64_t rows_ = 0, received_bytes_ = 0;
  int64_t last_received_us_ = 0;
};

}  // namespace sluice
