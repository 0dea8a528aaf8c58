// Which of several functions or operators of one name is meant: Postgres's rules for overloading
// (exact matches, preferred types, categories of unknown literals), in its order.
#include "parser/analyzer.h"

namespace sluice {
namespace {

// Keeps the candidates with the most matches; all, if none matches at all.
template <typename Matches>
void KeepBest(std::vector<Candidate>& candidates, Matches matches) {
  int best = 0;
  std::vector<Candidate> kept;
  for (const Candidate& candidate : candidates) {
    int count = matches(candidate);
    if (count > best || kept.empty()) {
      best = count;
      kept.clear();
      kept.push_back(candidate);
    } else if (count == best) {
      kept.push_back(candidate);
    }
  }
  candidates = std::move(kept);
}

struct Slot {
  char category = 0;
  bool has_preferred = false;
};

// For each unknown argument the category that the candidates want there: string if any takes one,
// else the one they agree on. False: they disagree.
bool CategoriesOfUnknowns(std::span<const Oid> types, const std::vector<Candidate>& candidates,
                          std::vector<Slot>& slots) {
  for (size_t i = 0; i < types.size(); i++) {
    if (types[i] != kUnknownOid) continue;
    Slot& slot = slots[i];
    slot = Slot{};
    bool conflict = false;
    for (const Candidate& candidate : candidates) {
      char category = TypeCategory(candidate.args[i]);
      bool preferred = IsPreferred(candidate.args[i]);
      if (slot.category == 0) {
        slot = {category, preferred};
      } else if (category == slot.category) {
        slot.has_preferred |= preferred;
      } else if (category == 'S') {
        slot = {category, preferred};
      } else {
        conflict = true;
      }
    }
    if (conflict && slot.category != 'S') return false;
  }
  return true;
}

void KeepThoseOfCategory(std::span<const Oid> types, const std::vector<Slot>& slots,
                         std::vector<Candidate>& candidates) {
  std::vector<Candidate> kept;
  for (const Candidate& candidate : candidates) {
    bool keep = true;
    for (size_t i = 0; i < types.size() && keep; i++) {
      if (types[i] != kUnknownOid) continue;
      keep = TypeCategory(candidate.args[i]) == slots[i].category &&
             (!slots[i].has_preferred || IsPreferred(candidate.args[i]));
    }
    if (keep) kept.push_back(candidate);
  }
  if (!kept.empty()) candidates = std::move(kept);
}

}  // namespace

std::vector<Candidate> MatchCandidates(std::span<const Oid> types,
                                       std::span<const Candidate> from) {
  std::vector<Candidate> matching;
  for (const Candidate& candidate : from)
    if (CanCoerce(types, candidate.args, CoercionContext::kImplicit)) matching.push_back(candidate);
  return matching;
}

const Candidate* SelectCandidate(std::span<const Oid> types, std::vector<Candidate>& candidates) {
  std::vector<Oid> base(types.begin(), types.end());
  size_t unknowns = 0;
  for (Oid& type : base) {
    if (type == kUnknownOid)
      unknowns++;
    else
      type = BaseType(type);
  }

  KeepBest(candidates, [&](const Candidate& candidate) {
    int count = 0;
    for (size_t i = 0; i < base.size(); i++)
      count += base[i] != kUnknownOid && candidate.args[i] == base[i];
    return count;
  });
  if (candidates.size() == 1) return &candidates[0];

  std::vector<Slot> slots(base.size());
  for (size_t i = 0; i < base.size(); i++) slots[i].category = TypeCategory(base[i]);
  KeepBest(candidates, [&](const Candidate& candidate) {
    int count = 0;
    for (size_t i = 0; i < base.size(); i++) {
      if (base[i] == kUnknownOid) continue;
      count +=
          candidate.args[i] == base[i] ||
          (TypeCategory(candidate.args[i]) == slots[i].category && IsPreferred(candidate.args[i]));
    }
    return count;
  });
  if (candidates.size() == 1) return &candidates[0];
  if (unknowns == 0) return nullptr;

  if (CategoriesOfUnknowns(base, candidates, slots)) {
    KeepThoseOfCategory(base, slots, candidates);
    if (candidates.size() == 1) return &candidates[0];
  }

  // Last: if all known arguments have one type, the unknown ones may have it too.
  if (unknowns == base.size()) return nullptr;
  Oid known = kUnknownOid;
  for (Oid type : base) {
    if (type == kUnknownOid) continue;
    if (known != kUnknownOid && known != type) return nullptr;
    known = type;
  }
  std::vector<Oid> assumed(base.size(), known);
  const Candidate* only = nullptr;
  for (const Candidate& candidate : candidates) {
    if (!CanCoerce(assumed, candidate.args, CoercionContext::kImplicit)) continue;
    if (only != nullptr) return nullptr;
    only = &candidate;
  }
  return only;
}

}  // namespace sluice
