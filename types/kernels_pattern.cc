// LIKE, ILIKE and regular expression operators.
#include "types/collation.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/pattern.h"

namespace sluice {
namespace {

using View = std::string_view;

template <bool kNot>
struct Like {
  bool operator()(View text, View pattern) const { return MatchLike(text, pattern) != kNot; }
};

// Both sides in lower case of the collation.
template <bool kNot>
void CaseBlindLike(const KernelCall& call) {
  const Column &text = *call.args[0], &pattern = *call.args[1];
  const Collator& collation =
      call.collation != nullptr ? *call.collation : *FindCollator(kCCollationOid);
  std::string lower_text, lower_pattern;
  if (pattern.constant() && call.count > 0)
    collation.AppendLower(pattern.At<View>(0), &lower_pattern);
  ForEachRow(call, [&](size_t i) {
    lower_text.clear();
    collation.AppendLower(text.At<View>(i), &lower_text);
    if (!pattern.constant()) {
      lower_pattern.clear();
      collation.AppendLower(pattern.At<View>(i), &lower_pattern);
    }
    call.out->Data<uint8_t>()[i] = MatchLike(lower_text, lower_pattern) != kNot;
  });
}

template <bool kIgnoreCase, bool kNot>
void MatchRegex(const KernelCall& call) {
  const Column &text = *call.args[0], &pattern = *call.args[1];
  uint8_t* out = call.out->Data<uint8_t>();
  if (pattern.constant()) {
    const Regex* regex =
        nullptr;  // compiled only if there is a row: an invalid one is an error then
    ForEachRow(call, [&](size_t i) {
      if (regex == nullptr) regex = &Regex::Compiled(pattern.At<View>(0), kIgnoreCase);
      out[i] = regex->Matches(text.At<View>(i)) != kNot;
    });
    return;
  }
  ForEachRow(call, [&](size_t i) {
    out[i] = Regex::Compiled(pattern.At<View>(i), kIgnoreCase).Matches(text.At<View>(i)) != kNot;
  });
}

struct LikeEscape {
  View operator()(const KernelCall& call, View pattern, View escape) const {
    return CopyResult(call, EscapeLike(pattern, escape));
  }
};

constexpr KernelFn kLike = Map<Like<false>, uint8_t, View, View>;
constexpr KernelFn kNotLike = Map<Like<true>, uint8_t, View, View>;

constexpr Kernel kKernels[] = {
    {850, "textlike", true, kLike},
    {1569, "like", true, kLike},
    {851, "textnlike", true, kNotLike},
    {1570, "notlike", true, kNotLike},
    {858, "namelike", true, kLike},
    {1571, "like", true, kLike},
    {859, "namenlike", true, kNotLike},
    {1572, "notlike", true, kNotLike},
    {1631, "bpcharlike", true, kLike},
    {1632, "bpcharnlike", true, kNotLike},
    {1633, "texticlike", true, CaseBlindLike<false>},
    {1634, "texticnlike", true, CaseBlindLike<true>},
    {1635, "nameiclike", true, CaseBlindLike<false>},
    {1636, "nameicnlike", true, CaseBlindLike<true>},
    {1660, "bpchariclike", true, CaseBlindLike<false>},
    {1661, "bpcharicnlike", true, CaseBlindLike<true>},
    {1637, "like_escape", true, Map<LikeEscape, View, View, View>},
    {1254, "textregexeq", true, MatchRegex<false, false>},
    {1256, "textregexne", true, MatchRegex<false, true>},
    {1238, "texticregexeq", true, MatchRegex<true, false>},
    {1239, "texticregexne", true, MatchRegex<true, true>},
    {79, "nameregexeq", true, MatchRegex<false, false>},
    {1252, "nameregexne", true, MatchRegex<false, true>},
    {1240, "nameicregexeq", true, MatchRegex<true, false>},
    {1241, "nameicregexne", true, MatchRegex<true, true>},
    {1658, "bpcharregexeq", true, MatchRegex<false, false>},
    {1659, "bpcharregexne", true, MatchRegex<false, true>},
    {1656, "bpcharicregexeq", true, MatchRegex<true, false>},
    {1657, "bpcharicregexne", true, MatchRegex<true, true>},
};

}  // namespace

std::span<const Kernel> PatternKernels() {
  return kKernels;
}

}  // namespace sluice
