// The extended query protocol: Parse, Bind, Describe, Execute, Close.
#include <pg_query/pg_query.pb-c.h>

#include "common/bytes.h"
#include "parser/extra_commands.h"
#include "postmaster/session.h"
#include "types/array.h"
#include "types/codec.h"
#include "types/utf8.h"

namespace sluice {

void Session::Parse(BodyReader body) {
  std::string name(body.CString());
  std::string_view text = body.CString();
  auto count = body.Int<int16_t>();
  std::vector<Oid> declared;
  for (int i = 0; i < count; i++) {
    auto type = body.Int<Oid>();
    declared.push_back(type == kUnknownOid ? kInvalidOid : type);
  }
  body.ExpectEnd();
  CheckUtf8(text);
  BeginStatement(text);
  if (name.empty())
    statements_.erase(name);
  else if (statements_.contains(name))
    Throw(sqlstate::kDuplicatePreparedStatement, "prepared statement \"{}\" already exists", name);

  std::shared_ptr<Statement> statement = FindRecent(text, declared);
  if (statement != nullptr)
    RequireNotFailed(*statement);
  else
    statement = ParseAnew(text, std::move(declared));
  statements_[name] = std::move(statement);
  MessageWriter message(client_.out());
  message.Begin('1');
  message.End();
  EndStatement("parse");
}

// Good only for the catalog and the settings of now: an analysis that is done again must not change
// the result's type, while a new statement may.
std::shared_ptr<Statement> Session::FindRecent(std::string_view text,
                                               const std::vector<Oid>& declared) const {
  for (const auto& [recent_text, statement] : recent_) {
    if (recent_text != text || statement->declared_types != declared) continue;
    bool good = !statement->is_query || (statement->analysed() && statement->catalog == catalog_ &&
                                         statement->analysed_version == settings_.version());
    if (good) return statement;
  }
  return nullptr;
}

std::shared_ptr<Statement> Session::ParseAnew(std::string_view text, std::vector<Oid> declared) {
  constexpr size_t kRecentStatements = 8, kRecentTextMax = 4096;
  std::optional<std::string> call = TranslateExtraCommand(text);
  auto parsed = std::make_shared<const ParsedSql>(ParseSql(call ? *call : text));
  if (parsed->statements().size() > 1)
    Throw(sqlstate::kSyntaxError, "cannot insert multiple commands into a prepared statement");
  auto statement = std::make_shared<Statement>();
  if (!parsed->statements().empty())
    statement = MakeStatement(parsed, parsed->statements()[0], parsed->statements()[0].node);
  statement->parsed = parsed;
  statement->declared_types = std::move(declared);
  RequireNotFailed(*statement);
  if (statement->is_query)
    Analyze(statement.get());
  else
    statement->param_types = statement->declared_types;
  if (text.size() <= kRecentTextMax) {
    std::erase_if(recent_, [&](const auto& recent) { return recent.first == text; });
    recent_.emplace_front(text, statement);
    if (recent_.size() > kRecentStatements) recent_.pop_back();
  }
  return statement;
}

std::shared_ptr<Statement> Session::FindStatement(const std::string& name) const {
  auto found = statements_.find(name);
  if (found != statements_.end()) return found->second;
  if (name.empty())
    Throw(sqlstate::kInvalidSqlStatementName, "unnamed prepared statement does not exist");
  Throw(sqlstate::kInvalidSqlStatementName, "prepared statement \"{}\" does not exist", name);
}

std::shared_ptr<Portal> Session::FindPortal(const std::string& name) const {
  auto found = portals_.find(name);
  if (found != portals_.end()) return found->second;
  Throw(sqlstate::kInvalidCursorName, "portal \"{}\" does not exist", name);
}

void Session::Bind(BodyReader body) {
  std::string portal_name(body.CString());
  std::string statement_name(body.CString());
  auto portal = std::make_shared<Portal>();
  portal->name = portal_name;
  portal->statement = FindStatement(statement_name);
  BeginStatement(portal->statement->text());
  RequireNotFailed(*portal->statement);
  if (portal_name.empty())
    portals_.erase(portal_name);
  else if (portals_.contains(portal_name))
    Throw(sqlstate::kDuplicateCursor, "cursor \"{}\" already exists", portal_name);
  if (portal->statement->is_query) Analyze(portal->statement.get());
  portal->level = transaction_.level();
  BindParameters(&body, statement_name, portal.get());
  auto formats = body.Int<int16_t>();
  for (int i = 0; i < formats; i++) {
    auto format = body.Int<int16_t>();
    if (format != 0 && format != 1)
      Throw(sqlstate::kInvalidParameterValue, "unsupported format code: {}", format);
    portal->formats.push_back(format);
  }
  body.ExpectEnd();
  CheckResultFormats(*portal, DescribeStatement(*portal->statement).size());
  portals_[portal_name] = std::move(portal);
  MessageWriter message(client_.out());
  message.Begin('2');
  message.End();
  EndStatement("bind");
}

void Session::CheckResultFormats(const Portal& portal, size_t columns) const {
  if (portal.formats.size() > 1 && portal.formats.size() != columns)
    Throw(sqlstate::kProtocolViolation,
          "bind message has {} result formats but query has {} columns", portal.formats.size(),
          columns);
}

void Session::BindParameters(BodyReader* body, const std::string& statement_name, Portal* portal) {
  const std::vector<Oid>& types = portal->statement->param_types;
  auto format_count = body->Int<int16_t>();
  std::vector<int16_t> formats;
  for (int i = 0; i < format_count; i++) formats.push_back(body->Int<int16_t>());
  auto count = static_cast<size_t>(body->Int<uint16_t>());
  if (formats.size() > 1 && formats.size() != count)
    Throw(sqlstate::kProtocolViolation, "bind message has {} parameter formats but {} parameters",
          formats.size(), count);
  if (count != types.size())
    Throw(sqlstate::kProtocolViolation,
          "bind message supplies {} parameters, but prepared statement \"{}\" requires {}", count,
          statement_name, types.size());
  for (size_t i = 0; i < count; i++) {
    PlanRequest::Param param{types[i], false, {}};
    auto length = body->Int<int32_t>();
    if (length < -1) Throw(sqlstate::kProtocolViolation, "invalid message format");
    int16_t format = FormatOf(formats, i);
    if (format != 0 && format != 1)
      Throw(sqlstate::kInvalidParameterValue, "unsupported format code: {}", format);
    param.is_null = length < 0;
    if (!param.is_null) {
      std::string_view bytes = body->Bytes(static_cast<size_t>(length));
      param.value = format == 1
                        ? CheckBinaryParameter(types[i], bytes, i, portal->arena.get())
                        : ParseText(types[i], -1, bytes, session_settings_, portal->arena.get());
    }
    portal->params.push_back(param);
  }
}

namespace {

// Values that another program made may be right and still not in the form in which a server has
// them.
bool MayBeUnusual(Oid type) {
  Oid element = ElementTypeOf(type);
  Oid of = element == kInvalidOid ? type : element;
  return element != kInvalidOid || of == kNumericOid || of == kJsonOid || of == kJsonbOid;
}

void CheckArrayHeader(Oid element, std::string_view bytes) {
  if (bytes.size() < 12) return;
  int32_t dimensions = LoadBig<int32_t>(bytes.data());
  if (dimensions > kArrayDimensionsMax)
    Throw(sqlstate::kProgramLimitExceeded,
          "number of array dimensions ({}) exceeds the maximum allowed ({})", dimensions,
          kArrayDimensionsMax);
  int32_t flags = LoadBig<int32_t>(bytes.data() + 4);
  if (flags != 0 && flags != 1)
    Throw(sqlstate::kInvalidBinaryRepresentation, "invalid array flags");
  Oid found = LoadBig<uint32_t>(bytes.data() + 8);
  if (found != element)
    Throw(sqlstate::kDatatypeMismatch,
          "binary data has array element type {} ({}) instead of expected {} ({})", found,
          FindType(found) == nullptr ? "???" : FormatType(found), element, FormatType(element));
}

}  // namespace

std::string_view Session::CheckBinaryParameter(Oid type, std::string_view bytes, size_t index,
                                               Arena* arena) const {
  const TypeInfo* info = FindType(type);
  bool label = info != nullptr && info->kind == 'e';  // the binary format of an enum is its label
  if (!HasBinaryCodec(type) && !label)
    Refuse("binary parameters of type {} are not supported", FormatType(type));
  std::string_view copy = arena->CopyString(bytes);
  if (label) return copy;
  if (info != nullptr && info->length > 0 && bytes.size() < static_cast<size_t>(info->length))
    Throw(sqlstate::kProtocolViolation, "insufficient data left in message");
  Oid element = ElementTypeOf(type);
  if (element != kInvalidOid) CheckArrayHeader(element, bytes);
  try {
    Column column = MakeConstantColumn(type, copy, false, arena);
    if (!MayBeUnusual(type)) return copy;
    std::string text;
    AppendText(column, 0, SessionSettings{}, &text);
    return ParseText(type, -1, text, SessionSettings{}, arena);
  } catch (const QueryError& e) {
    if (e.error.state != sqlstate::kInvalidBinaryRepresentation &&
        e.error.state != sqlstate::kProtocolViolation)
      throw;
    Throw(sqlstate::kInvalidBinaryRepresentation,
          "incorrect binary data format in bind parameter {}", index + 1);
  }
}

// The columns that the statement will return; none for most commands.
std::vector<ColumnDescription> Session::DescribeStatement(const Statement& statement) {
  if (!statement.raw) return {};
  if (statement.is_query) return statement.columns;
  const PgQuery__Node& node = *statement.raw->node;
  switch (node.node_case) {
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
      return ShowColumns(node.variable_show_stmt->name);
    case PG_QUERY__NODE__NODE_EXPLAIN_STMT:
      return {ExplainColumn(*statement.raw)};
    case PG_QUERY__NODE__NODE_EXECUTE_STMT: {
      auto inner = FindStatement(node.execute_stmt->name);
      if (inner->is_query) Analyze(inner.get());
      return DescribeStatement(*inner);
    }
    case PG_QUERY__NODE__NODE_FETCH_STMT:
      if (node.fetch_stmt->ismove) return {};
      return FindCursor(node.fetch_stmt->portalname)->statement->columns;
    default:
      return {};
  }
}

void Session::Describe(BodyReader body) {
  auto kind = body.Int<char>();
  std::string name(body.CString());
  body.ExpectEnd();
  if (kind != 'S' && kind != 'P')
    Throw(sqlstate::kProtocolViolation, "invalid DESCRIBE message subtype {}",
          static_cast<int>(kind));
  std::shared_ptr<Portal> portal = kind == 'P' ? FindPortal(name) : nullptr;
  std::shared_ptr<Statement> statement = portal ? portal->statement : FindStatement(name);
  BeginStatement(statement->text());
  RequireNotFailed(*statement);
  if (statement->is_query) Analyze(statement.get());
  MessageWriter message(client_.out());
  if (kind == 'S') {
    message.Begin('t');
    message.Int<int16_t>(static_cast<int16_t>(statement->param_types.size()));
    for (Oid type : statement->param_types) message.Int<Oid>(type);
    message.End();
  }
  auto columns = DescribeStatement(*statement);
  if (columns.empty() && !statement->returns_rows()) {
    message.Begin('n');
    message.End();
  } else {
    SendRowDescription(
        columns, portal ? std::span<const int16_t>(portal->formats) : std::span<const int16_t>());
  }
  EndStatement("describe");
}

void Session::Execute(BodyReader body) {
  std::string name(body.CString());
  auto rows_max = body.Int<int32_t>();
  body.ExpectEnd();
  auto portal = FindPortal(name);
  BeginStatement(portal->statement->text());
  RequireNotFailed(*portal->statement);
  BeginRemote(client_.next_type() == 'S');
  if (!RunPortal(portal, rows_max <= 0 ? 0 : static_cast<uint64_t>(rows_max), false)) {
    MessageWriter message(client_.out());
    message.Begin('s');
    message.End();
  }
  EndStatement(name.empty() ? "execute <unnamed>" : "execute " + name);
}

void Session::Close(BodyReader body) {
  auto kind = body.Int<char>();
  std::string name(body.CString());
  body.ExpectEnd();
  if (kind == 'S')
    statements_.erase(name);
  else if (kind == 'P')
    portals_.erase(name);
  else
    Throw(sqlstate::kProtocolViolation, "invalid CLOSE message subtype {}", static_cast<int>(kind));
  MessageWriter message(client_.out());
  message.Begin('3');
  message.End();
}

}  // namespace sluice
