// A backend that wants to compare views with the shards (view_verify.h) needs an epoch that is
// exactly what some snapshots see. How it gets one:
//
//   backend                                  view worker
//   hold.holder = its number            ──►  commits no epoch any more; hold.held = number
//   takes a snapshot of each shard, then
//   writes a mark with the snapshot          reads on, until every shard's mark has come;
//   everything into each shard's stream            ──►  that the snapshots see has come before them
//                                            one epoch of just what they see; hold.answered
//   takes a snapshot of the store       ◄──
//   hold.holder = 0                     ──►  goes on
//
// A store knows one position a shard: an epoch can only be a prefix of what a shard has committed.
// A snapshot is mostly one, and where it is not (of two that commit at once the later record may be
// visible first; an applied one may wait for a standby and be seen by nobody) the answer is that
// there is no such epoch, and the backend tries again.
#include <algorithm>

#include "postmaster/view_worker.h"
#include "shm/shared_memory.h"

namespace sluice {
namespace {

// Then changes go on, whatever the holder does.
constexpr int64_t kHoldUs = 5'000'000;

}  // namespace

// Whether epochs must wait.
bool ViewWorker::Hold(int64_t now_us) {
  ViewHold& hold = shared_memory->live_views.hold;
  uint64_t holder = hold.holder.load(std::memory_order_acquire);  // H1
  if (holder == 0) {
    holder_ = 0;
    return false;
  }
  if (holder != holder_) {
    holder_ = holder;
    hold_until_us_ = now_us + kHoldUs;
    hold_answered_ = false;
    hold.held.store(holder, std::memory_order_release);  // H2
    PublishViewNews();
  }
  if (now_us >= hold_until_us_) {
    if (!hold_answered_) AnswerHold(0);
    return false;
  }
  if (hold_answered_) return true;
  EpochCut marks;
  std::map<ShardFeed*, ShardSnapshot> snapshots;
  if (!FindMarks(&marks, &snapshots)) return true;
  std::optional<EpochCut> exactly = CutOf(marks, snapshots);
  EpochCut cut;
  if (exactly) cut = Cut(now_us, *exactly);
  bool closed = exactly && std::all_of(exactly->begin(), exactly->end(), [&](const auto& wanted) {
                  return cut[wanted.first] == wanted.second;
                });
  uint64_t before = last_epoch_;
  if (closed) RunEpoch(cut, now_us);
  AnswerHold(closed && last_epoch_ != before ? last_epoch_ : 0);
  return true;
}

void ViewWorker::AnswerHold(uint64_t epoch) {
  ViewHold& hold = shared_memory->live_views.hold;
  hold.epoch.store(epoch, std::memory_order_relaxed);
  hold.answered.store(holder_, std::memory_order_release);  // H3
  hold_answered_ = true;
  PublishViewNews();
}

// Where each shard's mark of the holder is ("verify/number/count of marks/snapshot"); false: not
// all have come.
bool ViewWorker::FindMarks(EpochCut* marks, std::map<ShardFeed*, ShardSnapshot>* snapshots) const {
  const std::string begin = fmt::format("verify/{}/", holder_);
  size_t wanted = 1;
  for (const auto& [server, feed] : feeds_) {
    const auto& ready = feed->reader().ready();
    for (size_t i = 0; i < ready.size(); i++)
      for (const std::string& mark : ready[i].marks) {
        if (!mark.starts_with(begin)) continue;
        size_t slash = mark.find('/', begin.size());
        if (slash == std::string::npos) continue;
        wanted = std::stoul(mark.substr(begin.size(), slash - begin.size()));
        (*marks)[feed.get()] = i;
        (*snapshots)[feed.get()] = ShardSnapshot::Parse(mark.substr(slash + 1));
      }
  }
  return marks->size() >= wanted;
}

// What the snapshots see, if that is a prefix of what each shard has committed.
std::optional<ViewWorker::EpochCut> ViewWorker::CutOf(
    const EpochCut& marks, const std::map<ShardFeed*, ShardSnapshot>& snapshots) const {
  EpochCut cut;
  for (const auto& [feed, mark] : marks) {
    const ShardSnapshot& snapshot = snapshots.at(feed);
    if (auto recent = recent_xids_.find(feed); recent != recent_xids_.end())
      for (uint32_t xid : recent->second)
        if (!snapshot.Sees(xid)) return std::nullopt;
    const auto& ready = feed->reader().ready();
    auto sees = [&](size_t i) { return ready[i].changes.empty() || snapshot.Sees(ready[i].xid); };
    size_t count = 0;
    while (count < mark && sees(count)) count++;
    cut[feed] = count;
    for (size_t i = count; i < mark; i++)
      if (!ready[i].changes.empty() && sees(i)) return std::nullopt;
  }
  return cut;
}

}  // namespace sluice
