#include "parser/extra_commands.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>
#include <strings.h>
#include <vector>

#include "common/error.h"

namespace sluice {
namespace {

// Words and signs of a short text; empty where the scanner does not understand it.
std::vector<std::string> Tokens(const std::string& text) {
  std::vector<std::string> tokens;
  PgQueryScanResult scanned = pg_query_scan(text.c_str());
  if (scanned.error == nullptr) {
    PgQuery__ScanResult* result = pg_query__scan_result__unpack(
        nullptr, scanned.pbuf.len, reinterpret_cast<const uint8_t*>(scanned.pbuf.data));
    for (size_t i = 0; result != nullptr && i < result->n_tokens; i++) {
      const PgQuery__ScanToken& token = *result->tokens[i];
      if (token.token == PG_QUERY__TOKEN__SQL_COMMENT || token.token == PG_QUERY__TOKEN__C_COMMENT)
        continue;
      tokens.push_back(text.substr(static_cast<size_t>(token.start),
                                   static_cast<size_t>(token.end - token.start)));
    }
    if (result != nullptr) pg_query__scan_result__free_unpacked(result, nullptr);
  }
  pg_query_free_scan_result(scanned);
  return tokens;
}

bool Is(const std::string& token, const char* word) {
  return strcasecmp(token.c_str(), word) == 0;
}

// Whether it may be one, without scanning: most texts are none.
bool MayBe(std::string_view text) {
  if (text.size() > 1000) return false;
  for (const char* word : {"flush", "wait", "cancel", "verify", "subscribe"}) {
    size_t length = std::string_view(word).size();
    for (size_t at = 0; at + length <= text.size(); at++)
      if (strncasecmp(text.data() + at, word, length) == 0) return true;
  }
  return false;
}

[[noreturn]] void ThrowSyntax(const std::string& token) {
  if (token.empty()) Throw(sqlstate::kSyntaxError, "syntax error at end of input");
  Throw(sqlstate::kSyntaxError, "syntax error at or near \"{}\"", token);
}

std::string Literal(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

// SUBSCRIBE TO name [WITH SNAPSHOT] [WITH PROGRESS] [AS OF epoch]
std::string TranslateSubscribe(const std::vector<std::string>& tokens) {
  auto token = [&](size_t i) { return i < tokens.size() ? tokens[i] : std::string(); };
  if (!Is(token(1), "to")) ThrowSyntax(token(1));
  size_t at = 2;
  std::string name, options, epoch;
  do {
    if (token(at).empty() || token(at) == ".") ThrowSyntax(token(at));
    name += tokens[at++];
    if (token(at) == ".") name += tokens[at++];
  } while (name.ends_with('.'));
  while (at < tokens.size()) {
    if (Is(token(at), "with") && (Is(token(at + 1), "snapshot") || Is(token(at + 1), "progress"))) {
      options += Is(token(at + 1), "snapshot") ? "snapshot " : "progress ";
      at += 2;
    } else if (Is(token(at), "as") && Is(token(at + 1), "of") && epoch.empty()) {
      epoch = token(at + 2);
      if (epoch.empty() || epoch.find_first_not_of("0123456789") != std::string::npos)
        ThrowSyntax(epoch);
      at += 3;
    } else {
      bool known = Is(token(at), "with") || Is(token(at), "as");
      ThrowSyntax(known ? token(at + 1) : token(at));
    }
  }
  return "CALL sluice.subscribe(" + Literal(name) + ", " + Literal(options) + ", " +
         Literal(epoch) + ")";
}

}  // namespace

std::optional<std::string> TranslateExtraCommand(std::string_view text) {
  if (!MayBe(text)) return std::nullopt;
  std::vector<std::string> tokens = Tokens(std::string(text));
  while (!tokens.empty() && tokens.back() == ";") tokens.pop_back();
  if (tokens.empty()) return std::nullopt;
  auto token = [&](size_t i) { return i < tokens.size() ? tokens[i] : std::string(); };
  if (Is(tokens[0], "flush")) {
    if (tokens.size() > 1) ThrowSyntax(tokens[1]);
    return "CALL sluice.flush()";
  }
  if (Is(tokens[0], "wait")) {
    if (tokens.size() == 1) return "CALL sluice.wait()";
    if (!Is(token(1), "materialized") || !Is(token(2), "view")) ThrowSyntax(tokens[1]);
    if (tokens.size() < 4) ThrowSyntax("");
    std::string name;
    for (size_t i = 3; i < tokens.size(); i++) name += tokens[i];
    return "CALL sluice.wait(" + Literal(name) + ")";
  }
  if (Is(tokens[0], "cancel")) {
    if (!Is(token(1), "job") && !Is(token(1), "jobs")) ThrowSyntax(token(1));
    std::string arguments;
    for (size_t i = 2; i < tokens.size(); i++) {
      bool number = tokens[i].find_first_not_of("0123456789") == std::string::npos;
      if (number != (i % 2 == 0) || (!number && tokens[i] != ",")) ThrowSyntax(tokens[i]);
      arguments += tokens[i];
    }
    if (arguments.empty() || arguments.back() == ',') ThrowSyntax("");
    return "CALL sluice.cancel_jobs(" + arguments + ")";
  }
  if (Is(tokens[0], "subscribe")) return TranslateSubscribe(tokens);
  // In the select list, where no other function of this server gives several rows.
  bool verify = tokens.size() == 7 && Is(tokens[0], "select") && Is(tokens[1], "sluice") &&
                tokens[2] == "." && Is(tokens[3], "verify") && tokens[4] == "(" &&
                tokens[5].starts_with("'") && tokens[6] == ")";
  if (verify) return "SELECT * FROM sluice.verify(" + tokens[5] + ")";
  return std::nullopt;
}

}  // namespace sluice
