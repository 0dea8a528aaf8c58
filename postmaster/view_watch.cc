// Every few seconds each server is asked about the tables that views read, for what their streams
// do not say (table_state.h). A table that may have other rows than its copy is read again.
#include <algorithm>

#include "common/log.h"
#include "postmaster/view_source.h"
#include "postmaster/view_worker.h"

namespace sluice {
namespace {

constexpr int64_t kWatchUs = 5'000'000;

}  // namespace

int64_t ViewWorker::WatchAtUs() const {
  int64_t at_us = 0;
  for (const auto& [feed, watch] : watches_)
    if (watch.question == nullptr && watch.until == 0)
      at_us = at_us == 0 ? watch.ask_at_us : std::min(at_us, watch.ask_at_us);
  return at_us;
}

void ViewWorker::PollWatches(int64_t now_us) {
  for (const auto& [server, feed] : feeds_) {
    if (!feed->wanted() || feed->state() != ShardFeed::State::kStreaming) {
      watches_.erase(feed.get());
      continue;
    }
    Watch& watch = watches_[feed.get()];
    if (watch.question != nullptr) {
      watch.question->PollText(&watch.answer);
      if (!watch.question->ended()) continue;
      bool answered = !watch.question->error() && watch.answer.size() == 1 &&
                      watch.answer[0].size() == watch.asked.size();
      watch.question.reset();
      watch.ask_at_us = now_us + kWatchUs;
      if (answered) ReadAnswer(&watch);
    }
    if (watch.until != 0) {
      if (feed->record().applied_lsn < watch.until) continue;
      watch.until = 0;
      TakeAnswer(&watch);
    } else if (now_us >= watch.ask_at_us) {
      AskAboutTables(feed.get(), &watch);
      if (watch.question == nullptr) watch.ask_at_us = now_us + kWatchUs;
    }
  }
}

void ViewWorker::AskAboutTables(ShardFeed* feed, Watch* watch) {
  watch->asked.clear();
  watch->answer.clear();
  std::vector<const Relation*> leaves;
  for (const auto& [oid, source] : sources_)
    for (const auto& leaf : source->leaves)
      if (leaf->feed() == feed && leaf->phase() > ViewLeaf::Phase::kSettle && !leaf->error()) {
        watch->asked.push_back({oid, leaf->oid(), leaf->state().value_or(""), {}});
        leaves.push_back(&leaf->relation());
      }
  if (leaves.empty()) return;
  try {
    RemoteStatement statement;
    statement.sql = TableStateSql(leaves, feed->publication());
    watch->question =
        std::make_unique<RemoteTask>([&](Arena* arena) { return feed->connect()(false, arena); },
                                     std::vector<RemoteStatement>{std::move(statement)});
  } catch (const QueryError& error) {
    LogError(LogLevel::kLog, error.error);
  }
}

// Only when views have what was committed before it can they be compared with it.
void ViewWorker::ReadAnswer(Watch* watch) {
  bool news = false;
  for (size_t i = 0; i < watch->asked.size(); i++) {
    Watch::Table& table = watch->asked[i];
    table.now = ReadTableState(watch->answer[0][i], &watch->until);
    news |= !table.now.published || table.now.Text() != table.before;
  }
  if (!news) watch->until = 0;
}

void ViewWorker::TakeAnswer(Watch* watch) {
  std::vector<std::pair<Oid, Error>> broken;
  for (const Watch::Table& table : watch->asked) {
    auto source = sources_.find(table.source);
    if (source == sources_.end() || source->second->broken) continue;
    for (const auto& leaf : source->second->leaves) {
      // It may be another by now, or have been read again since.
      std::string text = table.now.Text();
      if (leaf->oid() != table.leaf || leaf->state().value_or("") != table.before) continue;
      const std::string& server = leaf->feed()->server_name();
      if (table.now.oid.empty()) {
        broken.emplace_back(
            table.source,
            MakeError(sqlstate::kUndefinedTable, "table {} on server \"{}\" is not there any more",
                      RemoteName(leaf->relation()), server));
        continue;
      }
      TableState before = TableState::Parse(table.before);
      bool joins = !table.now.published || (!before.oid.empty() && table.now.oid != before.oid);
      if (joins || (!before.oid.empty() && table.now.HasOtherRows(before, leaf->truncated()))) {
        Log(LogLevel::kWarning, "table {} of server \"{}\" {}; it is read again",
            RemoteName(leaf->relation()), server,
            joins ? "is another one, or has left the publication"
                  : "has rows whose changes are not sent (its partitions or its file are others)");
        leaf->Restart(joins);
      }
      if (!joins && text != table.before) leaf->SetState(std::move(text));
    }
  }
  for (const auto& [oid, error] : broken) SetAside(oid, error);
}

}  // namespace sluice
