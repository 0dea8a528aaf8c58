// Finding the function that a call means.
#include <deque>

#include "parser/analyzer.h"

namespace sluice {
namespace {

struct FunctionCandidate {
  const ProcInfo* proc;
  std::span<const Oid> args;
  int variadic_count;
  int default_count;
};

// Parts of other functions and of index methods: nothing that SQL has can be passed to them.
bool TakesInternal(const ProcInfo& proc) {
  constexpr Oid kInternalOid = 2281;
  return std::find(proc.args.begin(), proc.args.end(), kInternalOid) != proc.args.end();
}

// Functions of the name that can be called with `count` arguments, VARIADIC ones spread out and
// defaults filled in; of two with the same arguments the one that needs neither.
struct CandidateList {
  std::vector<FunctionCandidate> functions;
  std::deque<std::vector<Oid>> spread;

  void Add(FunctionCandidate added) {
    for (FunctionCandidate& other : functions) {
      if (!std::equal(other.args.begin(), other.args.end(), added.args.begin(), added.args.end()))
        continue;
      if (added.default_count < other.default_count ||
          (added.default_count == other.default_count &&
           added.variadic_count < other.variadic_count))
        other = added;
      return;
    }
    functions.push_back(added);
  }

  void Collect(std::string_view name, size_t count, bool expand_variadic) {
    for (const ProcInfo* proc : FindProcs(name)) {
      if (proc->kind == 'p' || TakesInternal(*proc)) continue;
      size_t declared = proc->args.size();
      if (proc->variadic != kInvalidOid && expand_variadic && count >= declared && declared > 0) {
        std::vector<Oid>& args = spread.emplace_back(proc->args.begin(), proc->args.end() - 1);
        args.resize(count, proc->variadic);
        Add({proc, args, static_cast<int>(count - declared + 1), 0});
      } else if (declared == count) {
        Add({proc, proc->args, 0, 0});
      } else if (count < declared && count + proc->default_count >= declared) {
        Add({proc, proc->args.first(count), 0, static_cast<int>(declared - count)});
      }
    }
  }
};

FunctionChoice Choose(const FunctionCandidate& candidate) {
  FunctionChoice choice;
  choice.match = FunctionMatch::kFunction;
  choice.proc = candidate.proc;
  choice.declared.assign(candidate.args.begin(), candidate.args.end());
  choice.variadic_count = candidate.variadic_count;
  choice.default_count = candidate.default_count;
  return choice;
}

// f(x) with the name of a type is a cast, if it needs no function of its own.
Oid FunctionStyleCast(std::string_view name, std::span<const Oid> types, bool literal) {
  if (types.size() != 1) return kInvalidOid;
  const TypeInfo* info = FindType(name);
  if (info == nullptr || info->kind == 'p' || info->element != kInvalidOid) return kInvalidOid;
  if (types[0] == kUnknownOid) return literal ? info->oid : kInvalidOid;
  Oid function;
  switch (FindCoercion(info->oid, types[0], CoercionContext::kExplicit, &function)) {
    case CoercionPath::kRelabel:
      return info->oid;
    case CoercionPath::kViaIo:
      return types[0] == kRecordOid ? kInvalidOid : info->oid;
    default:
      return kInvalidOid;
  }
}

}  // namespace

FunctionChoice ChooseFunction(std::string_view name, std::span<const Oid> types,
                              bool expand_variadic, bool literal) {
  CandidateList list;
  list.Collect(name, types.size(), expand_variadic);
  for (const FunctionCandidate& candidate : list.functions)
    if (std::equal(types.begin(), types.end(), candidate.args.begin(), candidate.args.end()))
      return Choose(candidate);

  if (Oid type = FunctionStyleCast(name, types, literal); type != kInvalidOid) {
    FunctionChoice choice;
    choice.match = FunctionMatch::kCoercion;
    choice.coercion_type = type;
    return choice;
  }
  if (list.functions.empty()) return {};

  std::vector<Candidate> candidates;
  for (size_t i = 0; i < list.functions.size(); i++)
    candidates.push_back({list.functions[i].args, static_cast<int>(i)});
  candidates = MatchCandidates(types, candidates);
  if (candidates.empty()) return {};
  const Candidate* best =
      candidates.size() == 1 ? &candidates[0] : SelectCandidate(types, candidates);
  if (best == nullptr) {
    FunctionChoice choice;
    choice.match = FunctionMatch::kMultiple;
    return choice;
  }
  return Choose(list.functions[static_cast<size_t>(best->index)]);
}

}  // namespace sluice
