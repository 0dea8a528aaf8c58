#include "stream/backfill.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "common/bytes.h"

namespace sluice {
namespace {

// A shard as far as backfills can tell: transactions whose commit records are in the WAL, and which
// become visible some time later; rows that they have changed are locked until then.
class Shard {
 public:
  struct Entry {
    ShardTransaction transaction;  // of changes, or
    std::string mark;
    std::map<int, int> after;  // the table as the stream has it behind this entry
  };

  explicit Shard(unsigned seed) : random_(seed) {
    table_.name = "t";
    table_.columns = {{"id", kInt4Oid, true}, {"v", kInt4Oid, false}};
    for (int i = 0; i < 40; i++) visible_[i * 2] = committed_[i * 2] = i;
  }

  void Commit() {
    Entry entry;
    auto memory = std::make_shared<Arena>();
    entry.transaction.memory = {memory};
    uint64_t xid = next_xid_++;
    entry.transaction.xid = static_cast<uint32_t>(xid);
    entry.transaction.commit_lsn = lsn_ += 10;
    entry.transaction.end_lsn = lsn_ + 5;
    std::vector<int> locked;
    std::map<int, std::optional<int>> effect;
    auto set = [&](int key, std::optional<int> value) {
      effect[key] = value;
      if (value)
        committed_[key] = *value;
      else
        committed_.erase(key);
      locked.push_back(key);
    };
    for (unsigned n = random_() % 4 + 1; n > 0; n--) {
      int key = static_cast<int>(random_() % 90), to = static_cast<int>(random_() % 90);
      auto taken = [&](int k) {
        return locks_.contains(k) || std::find(locked.begin(), locked.end(), k) != locked.end();
      };
      if (taken(key) || taken(to)) continue;
      int value = static_cast<int>(random_() % 1000);
      RowChange change{&table_, RowChange::kInsert};
      if (!committed_.contains(key)) {
        change.new_row = Row(memory.get(), key, value);
        set(key, value);
      } else if (random_() % 3 == 0) {
        change.kind = RowChange::kDelete;
        change.old_row = Row(memory.get(), key, std::nullopt);
        set(key, std::nullopt);
      } else if (random_() % 2 == 0 && !committed_.contains(to)) {  // the key changes
        change.kind = RowChange::kUpdate;
        change.old_row = Row(memory.get(), key, std::nullopt);
        change.new_row = Row(memory.get(), to, value);
        set(key, std::nullopt);
        set(to, value);
      } else {
        change.kind = RowChange::kUpdate;
        change.new_row = Row(memory.get(), key, value);
        set(key, value);
      }
      entry.transaction.changes.push_back(change);
    }
    entry.after = committed_;
    invisible_.push_back({xid, effect});
    locks_.insert(locked.begin(), locked.end());
    stream.push_back(std::move(entry));
  }

  void BecomeVisible() {
    if (invisible_.empty()) return;
    size_t which = random_() % invisible_.size();
    for (const auto& [key, value] : invisible_[which].effect) {
      locks_.erase(key);
      if (value)
        visible_[key] = *value;
      else
        visible_.erase(key);
    }
    invisible_.erase(invisible_.begin() + static_cast<ptrdiff_t>(which));
  }

  ShardSnapshot Snapshot() const {
    uint64_t xmin = next_xid_;
    std::string running;
    for (const auto& transaction : invisible_) {
      xmin = std::min<uint64_t>(xmin, transaction.xid);
      running += (running.empty() ? "" : ",") + std::to_string(transaction.xid);
    }
    return ShardSnapshot::Parse(fmt::format("{}:{}:{}", xmin, next_xid_, running));
  }
  // Rows behind `after` under the snapshot of now.
  std::vector<std::pair<int, int>> Read(std::optional<int> after, size_t rows_max) const {
    std::vector<std::pair<int, int>> rows;
    for (auto it = after ? visible_.upper_bound(*after) : visible_.begin();
         it != visible_.end() && rows.size() < rows_max; ++it)
      rows.emplace_back(*it);
    return rows;
  }
  void Mark(std::string mark) {
    lsn_ += 10;
    next_xid_++;
    stream.push_back({{}, std::move(mark), committed_});
  }

  static std::span<const WireValue> Row(Arena* arena, int key, std::optional<int> value) {
    auto* row = arena->NewRaw<WireValue>(2);
    row[0] = Int(arena, key);
    row[1] = WireValue{};
    if (value)
      row[1] = Int(arena, *value);
    else
      row[1].length = WireValue::kUnchanged;
    return {row, 2};
  }

  std::deque<Entry> stream;

 private:
  struct Invisible {
    uint64_t xid;
    std::map<int, std::optional<int>> effect;
  };
  static WireValue Int(Arena* arena, int value) {
    char bytes[4];
    StoreBig<int32_t>(bytes, value);
    return {arena->CopyString({bytes, 4}).data(), 4};
  }

  std::mt19937 random_;
  PublishedTable table_;
  std::map<int, int> visible_, committed_;
  std::vector<Invisible> invisible_;
  std::set<int> locks_;
  uint64_t next_xid_ = 4294967200u;  // the stream's 32 bits wrap around soon
  Lsn lsn_ = 100;
};

int IntOf(const WireValue& value) {
  return LoadBig<int32_t>(value.data);
}

// The copy, with the checks that the store makes.
struct Copy {
  std::map<int, int> rows;
  void Apply(ChangeKind kind, std::span<const WireValue> old_row,
             std::span<const WireValue> new_row) {
    if (kind != ChangeKind::kInsert) {
      int key = IntOf(old_row.empty() ? new_row[0] : old_row[0]);
      ASSERT_EQ(rows.erase(key), 1u) << "a row was changed that is not there";
    }
    if (kind != ChangeKind::kDelete) {
      ASSERT_TRUE(rows.emplace(IntOf(new_row[0]), IntOf(new_row[1])).second)
          << "a row was inserted twice";
    }
  }
};

void RunOne(unsigned seed, bool ordered) {
  SCOPED_TRACE(fmt::format("seed {} ordered {}", seed, ordered));
  std::mt19937 random(seed);
  Shard shard(seed + 1);
  LeafBackfill backfill(KeyOrder({{0, kInt4Oid}}), ordered);
  Copy copy;
  auto apply = [&](ChangeKind kind, std::span<const WireValue> old_row,
                   std::span<const WireValue> new_row) { copy.Apply(kind, old_row, new_row); };
  struct Piece {
    ShardSnapshot snapshot;
    std::vector<std::pair<int, int>> rows;
    std::optional<std::vector<std::string>> last;
  };
  std::deque<Piece> waiting;  // for their marks, in this order
  // Pieces that are read before the first of them counts.
  size_t ahead = ordered ? random() % 3 + 1 : 1;
  std::vector<ChangeMemory> memory;
  int pieces = 0;
  // What runs when the table joins the publication has ended before the first piece is read.
  for (int steps = 0; steps < 600; steps++) {
    switch (random() % 4) {
      case 0:
        shard.Commit();
        break;
      case 1:
        shard.BecomeVisible();
        break;
      case 2:
        if (waiting.size() >= ahead || backfill.complete()) break;
        if (!waiting.empty() && !waiting.back().last) break;
        {
          const auto& from = waiting.empty() ? backfill.cursor() : waiting.back().last;
          std::optional<int> after;
          if (from) after = LoadBig<int32_t>((*from)[0].data());
          Piece& piece = waiting.emplace_back();
          piece.snapshot = shard.Snapshot();
          if (waiting.size() == 1) backfill.Seen(piece.snapshot);
          piece.rows = shard.Read(after, ordered ? random() % 6 + 1 : 1000);
          if (ordered && !piece.rows.empty()) {
            char bytes[4];
            StoreBig<int32_t>(bytes, piece.rows.back().first);
            piece.last = {{std::string(bytes, 4)}};
          }
          if (random() % 2 == 0) shard.Commit();
          shard.Mark(std::to_string(++pieces));
        }
        break;
      default: {
        if (shard.stream.empty()) break;
        Shard::Entry entry = std::move(shard.stream.front());
        shard.stream.pop_front();
        for (const RowChange& change : entry.transaction.changes)
          backfill.Take(change, entry.transaction, false, apply);
        if (!entry.mark.empty()) {
          const Piece& piece = waiting.front();
          for (const auto& row : piece.rows) ASSERT_TRUE(copy.rows.insert(row).second);
          ASSERT_TRUE(backfill.Count(piece.snapshot, piece.last, apply, &memory));
          waiting.pop_front();
          if (!waiting.empty()) backfill.Seen(waiting.front().snapshot);
        }
        // Up to the cursor the copy is the table as the stream has it.
        for (const auto& [key, value] : entry.after) {
          bool covered = backfill.complete();
          if (!covered && backfill.cursor())
            covered = key <= LoadBig<int32_t>((*backfill.cursor())[0].data());
          ASSERT_EQ(copy.rows.contains(key), covered) << key;
          if (covered) {
            ASSERT_EQ(copy.rows[key], value);
          }
        }
        if (backfill.complete()) {
          ASSERT_EQ(copy.rows, entry.after);
        }
      }
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(pieces, 0);
}

TEST(LeafBackfill, InRandomHistoriesTheCopyIsTheTableUpToTheCursor) {
  unsigned seed = std::random_device()();
  for (unsigned i = 0; i < 300 && !testing::Test::HasFatalFailure(); i++)
    RunOne(seed + i * 2, i % 4 != 0);
}

TEST(LeafBackfill, ATruncateThatAPieceHasNotSeenIsKnown) {
  LeafBackfill backfill(KeyOrder({{0, kInt4Oid}}), true);
  ShardTransaction transaction;
  transaction.xid = 20;
  transaction.commit_lsn = 7;
  backfill.TakeTruncate(transaction);
  EXPECT_TRUE(backfill.TruncatedAfter(ShardSnapshot::Parse("20:21:20")));
  EXPECT_FALSE(backfill.TruncatedAfter(ShardSnapshot::Parse("21:21:")));
  EXPECT_EQ(backfill.HoldLsn(), 7u);
  backfill.Seen(ShardSnapshot::Parse("21:21:"));
  EXPECT_EQ(backfill.HoldLsn(), std::nullopt);
}

}  // namespace
}  // namespace sluice
