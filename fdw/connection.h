// One connection to a shard. libpq connects; from then on this class reads and writes the socket.
//
// What was sent and not yet answered is a queue of steps; each ends at its ReadyForQuery. The
// stream that runs here (at most one) receives straight into its chunk; everything else goes
// through `scratch_`.
//
//   kConnecting ─► kOpen: idle (no steps, no stream) ⇄ busy ─► kClosed (in the graveyard until its
//                                                              operations are done)
#pragma once

#include <deque>
#include <libpq-fe.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fdw/cancel_request.h"
#include "fdw/remote_message.h"
#include "fdw/remote_socket.h"
#include "fdw/statement_cache.h"
#include "fdw/worker.h"
#include "shm/transaction_table.h"

namespace sluice {

class Pool;
struct Lease;
class PostgresStream;
struct SharedSnapshot;

enum class StepKind : uint8_t {
  kSetup,         // session settings; the stream's statement is sent only after it succeeded
  kPrelude,       // opens the stream's transaction and takes its snapshot
  kExport,        // the same, and answers with the name of the exported snapshot
  kMain,          // the stream's own statement
  kHousekeeping,  // COMMIT, ROLLBACK, DISCARD ALL: an error closes the connection
};

struct Step {
  StepKind kind;
  std::optional<RemoteError> error;  // the first
  std::string value;                 // kExport
};

class Connection final : public RemoteSocket::User {
 public:
  Connection(Worker* worker, Pool* pool, uint32_t generation);
  ~Connection();

  void StartConnectSoon() { connect_timer_.Arm(worker_->now_us); }

  // Tests: takes over a socket as if a connect had just succeeded on it.
  void Adopt(int fd);

  // --- the stream's side ---
  // Runs it now, or as soon as the connection can: after connecting, after a pin's earlier streams.
  void Run(PostgresStream* stream);
  // Ends the stream's use early; it calls OnDetached() as soon as nothing writes into its chunks.
  void Detach(PostgresStream* stream);
  // There may be room again.
  void Resume() {
    Pump();
    BecomeFree();
  }

  void PushStep(StepKind kind) { steps_.push_back({kind, std::nullopt, {}}); }
  RequestWriter request() { return RequestWriter(socket_.out()); }
  void Send();
  StatementCache& statements() { return statements_; }
  bool busy() const { return stream_ != nullptr || !steps_.empty(); }
  // What the shard has said to the step at work; null: no error so far.
  const RemoteError* answered_error() const {
    return steps_.empty() || !steps_.front().error ? nullptr : &*steps_.front().error;
  }
  bool in_transaction() const { return transaction_status_ != 'I'; }
  size_t unsent_bytes() const { return socket_.unsent_bytes(); }
  // Whether it is worth trying the stream's statement again on another connection: this one was
  // idle before and died without a byte of answer.
  // A FATAL that comes before anything else is none: the shard had not begun to read the statement,
  // or ParseComplete would have come before it.
  bool died_unused() const { return reused_ && (received_bytes_ == 0 || only_farewell_); }
  // Not free until ReleaseHold(): others still import the snapshot of this one's transaction.
  void Hold(SharedSnapshot* snapshot) { hold_ = snapshot; }
  void ReleaseHold();

  // When it is free, lend it to the lease's backend (connection_lend.cc).
  void LendAfter(Lease* lease) { lend_to_ = lease; }

  // --- the pool's side ---
  Pool* pool() const { return pool_; }
  uint32_t generation() const { return generation_; }
  uint64_t pin() const { return pin_; }
  void set_pin(uint64_t pin);
  void Unpin(bool reset);
  // Ends the stream with an error of ours.
  void FailStream(const Error& error);
  void Cancel();  // asks the shard to cancel what runs; the stream stays and gets the error
  const std::optional<std::string>& applied_setup() const { return applied_setup_; }
  int64_t idle_since_us() const { return idle_since_us_; }
  // A look at an idle socket: false if the shard has closed it or says what it should not.
  bool CheckIdle();
  void Close();  // REQUIRES: idle
  const Lease* lent_to() const { return lent_to_; }
  void TakeBack();  // its borrower has given it back
  // Closed and no operation under way: may be destroyed.
  bool dead() const;

 private:
  enum class State : uint8_t { kConnecting, kOpen, kClosed };
  enum class Into : uint8_t { kScratch, kChunk, kAssembly };
  // A message that is larger than a chunk.
  struct Assembly {
    MessageHeader header{};
    char* data = nullptr;  // a row's: AllocateExtents memory
    std::string text;      // any other message's
    size_t filled_bytes = 0;
    bool active() const { return header.total_bytes != 0; }
    bool whole() const { return filled_bytes == header.total_bytes; }
    char* at() { return data != nullptr ? data : text.data(); }
  };

  // Connecting (connection_connect.cc).
  void StartConnect();
  std::optional<Error> CheckNoLookup() const;
  void OnConnectPoll();
  void OnConnectReady();
  void OnConnectTimer();
  void ConnectFailed(Error error);
  void ReadCancelKey();
  void CloseTrace();

  // Running (connection.cc).
  void ShowPin();  // or to whom it is lent
  void HidePin();
  void Begin();  // the stream's setup, or its statement
  std::string BaseSettings() const;
  void SendSetup(std::string_view session_setup);
  void FinishSetup(Step step);
  PostgresStream* LetStreamGo();
  void Pump();  // receives on, if there is something to wait for and room for it
  bool UsesChunk() const;
  void OnReceived(int result) override;
  void OnSent(int result) override;
  void Parse();
  void ParseChunk();
  void ParseScratch();
  void AppendScratch(std::string_view rest);
  void BeginAssembly(const MessageHeader& header, std::string_view here);
  bool FinishAssembly();
  void DropAssembly();
  bool Handle(char type, std::string_view body);
  bool HandleReady(char transaction_status);
  void BecomeFree();
  void SendReset();

  // Lending (connection_lend.cc).
  bool CanBeLent() const;
  bool Lend(Lease* lease);
  void EndLease(Lease** lease);

  // Ending (connection_end.cc). Abort waits for a receive under way, Lost does not.
  void CompleteDetach();
  void SendCancel();
  bool cancelling() const;
  void Abort(Error error);
  void Malformed(std::string_view what);
  void Lost(Error error);
  Error EndOfConnection(int result) const;
  void OnSilence();
  void OnCancelTimer();

  Worker* const worker_;
  Pool* const pool_;
  const uint32_t generation_;
  State state_ = State::kConnecting;

  PGconn* libpq_ = nullptr;
  UniqueFd adopted_;
  FILE* trace_ = nullptr;  // libpq tells the cancel key only here
  char* trace_text_ = nullptr;
  size_t trace_bytes_ = 0;
  IoOperation connect_poll_;
  Timer connect_timer_;  // the backoff before, the timeout during a connect
  int64_t connect_deadline_us_ = 0;
  RemoteSocket socket_;

  std::deque<Step> steps_;
  PostgresStream* stream_ = nullptr;
  std::deque<PostgresStream*> queue_;  // a pin's next streams
  bool begun_ = false;                 // Begin() was called for stream_
  bool detaching_ = false;  // stream_ wants to go, a receive into its chunk is being cancelled
  SharedSnapshot* hold_ = nullptr;
  bool idle_ = false;     // lies in the pool
  bool parsing_ = false;  // bytes are being looked at: no receive may be started
  bool reused_ = false;
  uint64_t received_bytes_ = 0;  // since Run
  bool answered_ = false;        // since Run: a message came that answers something
  bool only_farewell_ = false;   // since Run: a FATAL came, and nothing before it
  std::optional<Error> abort_error_;
  std::optional<RemoteError> fatal_;  // a FATAL that came outside of any step
  char transaction_status_ = 'I';
  std::optional<std::string> applied_setup_;  // none: base settings not sent yet
  std::string pending_setup_;
  // The setup was applied inside of a transaction, whose rollback (or one to a savepoint) undoes
  // it: it is sent again each time.
  bool setup_in_transaction_ = false;
  std::optional<RemoteError> setup_error_;
  StatementCache statements_;

  Into into_ = Into::kScratch;  // where the receive under way writes
  std::string scratch_;         // its size is its room
  size_t scratch_begin_ = 0, scratch_end_ = 0;
  uint64_t skip_bytes_ = 0;  // of a large message that nobody wants
  Assembly assembly_;

  Lease* lend_to_ = nullptr;  // wants it when it is free
  Lease* lent_to_ = nullptr;  // has it: nothing is sent or received here
  uint32_t lent_shown_ = 0;   // its slot in the registry of streams
  bool close_when_free_ = false;

  uint64_t pin_ = 0;
  uint32_t pin_shown_ = kPinnedConnectionsMax;  // its entry in shm/transaction_table.h
  bool unpin_wanted_ = false;
  bool reset_wanted_ = false;
  int64_t idle_since_us_ = 0;
  int64_t last_received_us_ = 0;
  Timer silence_timer_;
  Timer cancel_timer_;
  int64_t cancel_deadline_us_ = 0;
  std::unique_ptr<CancelRequest> cancel_;
  bool cancel_lost_ = false;  // a cancel may arrive at any time: never to be used again
  uint32_t backend_pid_ = 0, cancel_key_ = 0;
};

}  // namespace sluice
