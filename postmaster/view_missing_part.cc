// A transaction over several servers is taken in whole. Where one server's part does not come, that
// server is asked for it:
//
//   prepared there   it is waited for: the transaction resolver, or the operator (COMMIT PREPARED,
//                    ROLLBACK PREPARED), will end it
//   not prepared     it was committed or rolled back. As the WAL has the commit record before the
//                    prepared transaction goes, it comes before the position that the server
//                    tells with its answer, or never
//   no answer        it is waited for: the server is down, and sluice.shards says so
#include <algorithm>

#include "catalog/quote.h"
#include "common/log.h"
#include "postmaster/view_worker.h"
#include "stream/change_reader.h"

namespace sluice {
namespace {

// Parts mostly come within milliseconds.
constexpr int64_t kPatienceUs = 1'000'000;
constexpr int64_t kAskAgainUs = 1'000'000;
constexpr int64_t kTellAgainUs = 60'000'000;

}  // namespace

ViewWorker::MissingPart& ViewWorker::MissPart(ShardFeed* from, const std::string& gid,
                                              int64_t now_us) {
  MissingPart& part = missing_parts_[fmt::format("{}/{}", from->server(), gid)];
  if (part.since_us == 0) {
    part.from = from;
    part.gid = gid;
    part.since_us = now_us;
    part.ask_at_us = now_us + kPatienceUs;
  }
  return part;
}

void ViewWorker::AskForPart(MissingPart* part, int64_t now_us) {
  part->ask_at_us = now_us + kAskAgainUs;
  if (part->from->state() != ShardFeed::State::kStreaming) return;
  try {
    RemoteStatement statement;
    // Looked for first, then the position is taken.
    statement.sql = fmt::format(
        "SELECT prepared, pg_catalog.pg_logical_emit_message(true, '{}', 'part') FROM (SELECT "
        "EXISTS (SELECT FROM pg_catalog.pg_prepared_xacts WHERE gid = {}) AS prepared OFFSET 0) p",
        kMarkMessagePrefix, QuoteLiteral(part->gid));
    const auto& connect = part->from->connect();
    part->answer.clear();
    part->question =
        std::make_unique<RemoteTask>([&](Arena* arena) { return connect(false, arena); },
                                     std::vector<RemoteStatement>{std::move(statement)});
  } catch (const QueryError& error) {
    LogError(LogLevel::kLog, error.error);
  }
}

void ViewWorker::PollMissingParts(int64_t now_us) {
  for (auto& [key, part] : missing_parts_) {
    if (part.never) continue;
    if (part.until != 0) {
      const auto& ready = part.from->reader().ready();
      bool came = std::any_of(ready.begin(), ready.end(),
                              [&](const ShardTransaction& t) { return t.gid == part.gid; });
      if (came || part.from->reader().received_lsn() <= part.until) continue;
      Log(LogLevel::kWarning,
          "transaction \"{}\" was not committed on server \"{}\"; views take in its other part",
          part.gid, part.from->server_name());
      part.never = part_settled_ = true;
      continue;
    }
    if (part.question == nullptr) {
      if (now_us >= part.ask_at_us) AskForPart(&part, now_us);
      continue;
    }
    part.question->PollText(&part.answer);
    if (!part.question->ended()) continue;
    bool answered = !part.question->error() && part.answer.size() == 1 &&
                    part.answer[0].size() == 1 && part.answer[0][0].size() == 2;
    if (answered && part.answer[0][0][0] == "f") {
      part.until = ParseLsn(part.answer[0][0][1].value_or("0/0"));
    } else if (now_us - part.since_us > kTellAgainUs / 2 && now_us >= part.told_at_us) {
      part.told_at_us = now_us + kTellAgainUs;
      Log(LogLevel::kWarning, "views wait for transaction \"{}\": {} server \"{}\"{}", part.gid,
          answered ? "it is still prepared on" : "there is no answer from",
          part.from->server_name(),
          answered ? "; COMMIT PREPARED or ROLLBACK PREPARED there ends that" : "");
    }
    part.question.reset();
  }
}

}  // namespace sluice
