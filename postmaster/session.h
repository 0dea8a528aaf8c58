// One client's session: the protocol loop, and the state that lasts between messages. The work
// itself lies in session_*.cc by subject; errors are caught once, in Run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "postmaster/backend.h"
#include "postmaster/catalog_follower.h"
#include "postmaster/client_socket.h"
#include "postmaster/distributed_transaction.h"
#include "postmaster/settings.h"
#include "postmaster/statement.h"
#include "postmaster/transaction.h"

struct PgQuery__Node;
struct PgQuery__FuncCall;

namespace sluice {

// Both ends of a client's connection.
struct PeerAddress {
  std::string address;  // "" for a unix socket
  int port = -1;
  std::string server_address;
};

class Session {
 public:
  Session(UniqueFd client, const BackendConfig& config);
  ~Session();
  // Serves the client until it leaves (returns), or throws what ends the session.
  void Run();

 private:
  struct CommandResult {
    std::string tag;  // "" : the command has sent its own CommandComplete
    std::optional<TextRows> rows;
  };

  // --- session_startup.cc
  bool StartUp();  // false: it was a cancel request, or the client left
  void AnswerSslRequest(int64_t deadline_us);
  void ReadStartupOptions(BodyReader* body, int32_t version);
  void ApplyClientSetting(const std::string& name, const std::string& value);
  void ApplyCommandLineOptions(std::string_view options);
  void SendGreeting();

  // --- session_authentication.cc: throws FatalError for whoever is not let in
  void Authenticate(const PeerAddress& peer, int64_t deadline_us);
  void AuthenticateByPassword(int64_t deadline_us);
  std::string ReadAuthenticationMessage(int64_t deadline_us);
  void RequireMayConnect();
  // Whose privileges count: SET ROLE's, or the session's user.
  const std::string& current_user() const;
  // Who the client is, or who SET SESSION AUTHORIZATION has made him.
  const std::string& session_user() const { return settings_.Text("session_authorization"); }
  const Role& CurrentRole() const;  // 42704 where it was dropped meanwhile
  // From here on no statement, function or option makes the session a role that it may not be.
  void GuardRoles();
  void RequireMaySetRole(std::string_view setting, const std::string& name) const;

  // --- session.cc: the loop
  MessageReader::Message ReadMessage();
  bool WaitForMessage();
  int IdleTimeoutMs() const;
  // How long portals that nobody fetches from may hold what others wait for; -1: there are none.
  int SpillDelayMs() const;
  void SpillSuspendedPortals();
  // What the session's other portals hold is not to be waited for by itself.
  void MakeRoom();
  void HandleIdleTimeout();
  void HandleIdleRequests();
  void ServeOneMessage();
  void Dispatch(const MessageReader::Message& message);
  void HandleError(const Error& error);
  void SendReady();
  void SendReports();
  void SendCommandComplete(std::string_view tag);
  void SendNotice(const Error& error, std::string_view severity);
  void Warn(SqlState state, std::string message);
  void ReloadConfiguration();
  // Around each statement: transaction, clock, catalog, timeout, log.
  void BeginStatement(std::string_view text);
  // `last`: nothing else follows in its message or pipeline, so that a first statement that belongs
  // to no block is all of its transaction.
  void BeginRemote(bool last);
  void EndStatement(std::string_view what);
  void RequireNotFailed(const Statement& statement) const;
  void RefreshCatalog();
  void RefreshSettings();
  const QuerySession& MakeQuerySession();

  // --- session_query.cc: simple queries, and what both protocols share
  void SimpleQuery(std::string_view text);
  void RunSimpleStatement(const std::shared_ptr<Statement>& statement);
  bool IsAnalysed(Statement* statement) const;
  void ShowCatalogToFunctions();
  void Analyze(Statement* statement);
  const Query* AnalyzeIn(Arena* arena, const Statement& statement, std::vector<Oid>* types);
  const Query* QueryToRun(Statement* statement, Arena* arena);
  // A shard's help with what analysis or planning refused; throws `error`, or the shard's, where
  // there is none.
  std::shared_ptr<const CompletionQuery> CompleteOrThrow(const Statement& statement,
                                                         const std::vector<Oid>& types,
                                                         const Error& error);
  std::unique_ptr<RunningQuery> MakeRunning(Statement* statement, Arena* arena,
                                            const QueryOptions& options);
  void StartPortal(Portal* portal);
  // Rows and CommandComplete; false: suspended at `rows_max`.
  bool RunPortal(const std::shared_ptr<Portal>& portal, uint64_t rows_max, bool simple);
  void SendRowDescription(std::span<const ColumnDescription> columns,
                          std::span<const int16_t> formats);
  uint64_t SendTextRows(const TextRows& rows, size_t from, uint64_t rows_max);
  uint64_t SendQueryRows(Portal* portal, std::span<const int16_t> formats, uint64_t rows_max);
  // A query's rows as text, for the server's own use.
  std::vector<std::vector<std::optional<std::string>>> QueryAsText(Statement* statement);

  // --- session_extended.cc
  void Parse(BodyReader body);
  void Bind(BodyReader body);
  void Describe(BodyReader body);
  void Execute(BodyReader body);
  void Close(BodyReader body);
  void BindParameters(BodyReader* body, const std::string& statement_name, Portal* portal);
  std::string_view CheckBinaryParameter(Oid type, std::string_view bytes, size_t index,
                                        Arena* arena) const;
  std::shared_ptr<Statement> FindStatement(const std::string& name) const;
  std::shared_ptr<Statement> FindRecent(std::string_view text,
                                        const std::vector<Oid>& declared) const;
  std::shared_ptr<Statement> ParseAnew(std::string_view text, std::vector<Oid> declared);
  std::shared_ptr<Portal> FindPortal(const std::string& name) const;
  std::vector<ColumnDescription> DescribeStatement(const Statement& statement);
  void CheckResultFormats(const Portal& portal, size_t columns) const;

  // --- session_command.cc: all that is no query
  CommandResult RunCommand(const std::shared_ptr<Statement>& statement);
  CommandResult RunDdlCommand(const RawStatement& raw);
  // INSERT … SELECT of a command's own; the rows that it inserted.
  uint64_t RunInsert(const std::string& sql);
  CommandResult RunTransaction(const RawStatement& raw);
  CommandResult EndBlock(bool commit, bool chain);
  CommandResult RunPrepare(const Statement& statement);
  CommandResult RunDeallocate(const RawStatement& raw);
  CommandResult RunDiscard(const RawStatement& raw);
  CommandResult RunExplain(const std::shared_ptr<Statement>& statement);
  static ColumnDescription ExplainColumn(const RawStatement& raw);
  std::shared_ptr<Portal> MakeExecutePortal(const Statement& statement);
  std::vector<Oid> ResolveTypes(const Statement& statement,
                                std::span<PgQuery__Node* const> type_names);
  void StartTransaction();
  void Commit();
  void Rollback();
  void RestoreCatalog(const std::shared_ptr<const Catalog>& to);
  void DropPortals(int level_min);  // those of that level and deeper

  // --- session_view.cc: live views
  std::shared_ptr<const Catalog> CommittedCatalog();
  bool IsViewCreated(const Relation& view);
  void RefuseOwnViews(std::span<const Oid> views);
  void WaitForViewsOf(const Query& query);
  void WaitForViewsOf(const CompletionRequest& completion);
  void WaitForViewsOf(const RawStatement& raw);
  void WaitUntilReadable(std::span<const Relation* const> views, bool verifies);
  void WaitUntilCreated(std::span<const Oid> views);
  void FlushViews();
  void FinishViews();
  void RemoveViews(std::vector<Oid> views);
  std::optional<CommandResult> RunViewCommand(const RawStatement& raw);
  void RunWait(const PgQuery__FuncCall& call);
  // session_subscribe.cc. Ends by an error only.
  [[noreturn]] void RunSubscribe(const PgQuery__FuncCall& call);
  void SendSnapshot(std::unique_ptr<ViewSnapshot> snapshot, const RelationInfo& view,
                    const std::function<void(const Batch&)>& send);
  void CancelJobs(const PgQuery__FuncCall& call);
  void NoticeBackgroundDdl();

  // --- session_setting.cc
  CommandResult RunSet(const RawStatement& raw);
  CommandResult RunShow(const RawStatement& raw);
  static std::vector<ColumnDescription> ShowColumns(const char* name);
  void SetTransactionModes(std::string_view prefix, std::span<PgQuery__Node* const> options);

  // --- session_cursor.cc
  CommandResult RunDeclare(const std::shared_ptr<Statement>& statement);
  CommandResult RunClose(const RawStatement& raw);
  // Sends the rows and returns the tag.
  std::string RunFetch(const RawStatement& raw, std::span<const int16_t> formats, bool describe);
  void StoreCursor(Portal* portal);
  void HoldCursors();
  uint64_t FetchStored(Portal* portal, int direction, int64_t count, RowSink* sink);
  uint64_t FetchRunning(Portal* portal, int direction, int64_t count, RowSink* sink);
  std::shared_ptr<Portal> FindCursor(const std::string& name) const;

  // --- session_copy.cc
  std::string RunCopy(const Statement& statement);
  // --- session_copy_from.cc
  std::string RunCopyFrom(const Statement& statement);
  // The next CopyData's bytes; false at CopyDone.
  bool ReadCopyData(std::string_view* bytes);

  BackendConfig config_;
  ClientSocket client_;
  Settings settings_;
  uint64_t settings_seen_ = 0;  // version that session_settings_ and the activity row show
  SessionSettings session_settings_;
  std::string user_, database_;  // user_: who the client is
  std::optional<CatalogFollower> follower_;
  std::shared_ptr<const Catalog> catalog_;
  // DDL of the running transaction: catalog_ is its changed copy, catalog_base_ what it began with,
  // and catalog_saved_ what each savepoint began with.
  bool catalog_pending_ = false;
  std::shared_ptr<const Catalog> catalog_base_;
  std::vector<std::shared_ptr<const Catalog>> catalog_saved_;
  std::vector<Oid> new_views_;  // materialized views that this transaction has made
  Transaction transaction_;
  std::unique_ptr<LeaseSet> leases_;  // before the portals, whose queries use them
  QuerySession query_session_;
  uint64_t query_session_version_ = 0;  // of the settings that it was made of
  DistributedTransaction distributed_{
      [this]() -> const QuerySession& { return MakeQuerySession(); }};
  std::map<std::string, std::shared_ptr<Statement>> statements_;
  // What Parse made last, with its text: drivers that prepare nothing send the same text again and
  // again, and find its analysis and its plans here.
  std::deque<std::pair<std::string, std::shared_ptr<Statement>>> recent_;
  std::map<std::string, std::shared_ptr<Portal>> portals_;
  bool ready_wanted_ = true;       // ReadyForQuery is due before the next read
  bool just_answered_ = false;     // … and has just left: the next message cannot be here yet
  bool ends_message_ = false;      // the statement that runs is the last of a simple query
  bool skip_to_sync_ = false;      // after an error in the extended protocol
  bool extended_ = false;          // the message being served is of the extended protocol
  std::string shown_text_;         // of the last statement, without passwords
  std::string_view current_text_;  // the same while it runs, for the log
  uint64_t defaults_applied_ = 0;  // settings' version at which a transaction's are its defaults
  int64_t statement_start_us_ = 0;
};

}  // namespace sluice
