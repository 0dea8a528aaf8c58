// Functions of text that take it apart and put it together. Characters are UTF-8 characters.
#include "types/bpchar.h"
#include "types/collation.h"
#include "types/compare_values.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/utf8.h"

namespace sluice {
namespace {

using View = std::string_view;

constexpr size_t kTextBytesMax = (size_t{1} << 30) - 1 - 4;  // as large as Postgres lets a value be

[[noreturn]] void TooLong() {
  Throw(sqlstate::kProgramLimitExceeded, "requested length too large");
}

char* Reserve(const KernelCall& call, size_t size) {
  return static_cast<char*>(call.context->arena->Allocate(size, 1));
}

struct Concatenate {
  View operator()(const KernelCall& call, View a, View b) const {
    if (a.empty()) return b;
    if (b.empty()) return a;
    char* to = Reserve(call, a.size() + b.size());
    std::memcpy(to, a.data(), a.size());
    std::memcpy(to + a.size(), b.data(), b.size());
    return {to, a.size() + b.size()};
  }
};

struct Length {
  int32_t operator()(View text) const { return static_cast<int32_t>(Utf8Count(text)); }
};
struct BpcharLength {
  int32_t operator()(View text) const { return static_cast<int32_t>(Utf8Count(TrimBpchar(text))); }
};
struct OctetLength {
  int32_t operator()(View bytes) const { return static_cast<int32_t>(bytes.size()); }
};
struct BitLength {
  int32_t operator()(View bytes) const { return static_cast<int32_t>(bytes.size() * 8); }
};

template <void (Collator::*Fn)(View, std::string*) const>
struct ChangeCase {
  View operator()(const KernelCall& call, View text) const {
    static const Collator* const c = FindCollator(kCCollationOid);
    std::string out;
    out.reserve(text.size());
    ((call.collation != nullptr ? call.collation : c)->*Fn)(text, &out);
    return CopyResult(call, out);
  }
};

// Characters from `start` (1-based, may be before the text) up to `end`, which is not included.
View CharactersOf(View text, int64_t start, int64_t end) {
  start = std::max<int64_t>(start, 1);
  if (end <= start) return {};
  size_t from = Utf8Offset(text, static_cast<size_t>(start - 1));
  View rest = text.substr(from);
  return rest.substr(0, Utf8Offset(rest, static_cast<size_t>(end - start)));
}
struct Substring {
  View operator()(View text, int32_t start, int32_t length) const {
    if (length < 0) Throw(sqlstate::kSubstringError, "negative substring length not allowed");
    return CharactersOf(text, start, int64_t{start} + length);
  }
};
struct SubstringToEnd {
  View operator()(View text, int32_t start) const { return CharactersOf(text, start, INT64_MAX); }
};
struct ByteSubstring {
  View operator()(View bytes, int32_t start, int32_t length) const {
    if (length < 0) Throw(sqlstate::kSubstringError, "negative substring length not allowed");
    int64_t from = std::max<int64_t>(start, 1) - 1, to = int64_t{start} + length - 1;
    to = std::min<int64_t>(to, static_cast<int64_t>(bytes.size()));
    return to <= from ? View()
                      : bytes.substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
  }
};
struct ByteSubstringToEnd {
  View operator()(View bytes, int32_t start) const {
    size_t from = static_cast<size_t>(std::max<int64_t>(start, 1) - 1);
    return from >= bytes.size() ? View() : bytes.substr(from);
  }
};
struct Position {
  int32_t operator()(View text, View part) const {
    size_t at = text.find(part);
    return at == View::npos ? 0 : static_cast<int32_t>(Utf8Count(text.substr(0, at))) + 1;
  }
};
struct BytePosition {
  int32_t operator()(View bytes, View part) const {
    size_t at = bytes.find(part);
    return at == View::npos ? 0 : static_cast<int32_t>(at) + 1;
  }
};

bool InSet(View character, View set) {
  for (size_t at = 0; at < set.size(); at += Utf8Step(set, at)) {
    if (set.substr(at, Utf8Step(set, at)) == character) return true;
  }
  return false;
}
View TrimFront(View text, View set) {
  size_t at = 0;
  while (at < text.size() && InSet(text.substr(at, Utf8Step(text, at)), set))
    at += Utf8Step(text, at);
  return text.substr(at);
}
View TrimBack(View text, View set) {
  size_t keep = 0;  // behind the last character that stays
  for (size_t at = 0; at < text.size();) {
    size_t step = Utf8Step(text, at);
    if (!InSet(text.substr(at, step), set)) keep = at + step;
    at += step;
  }
  return text.substr(0, keep);
}
template <bool kFront, bool kBack>
struct Trim {
  View operator()(View text, View set) const {
    if (kFront) text = TrimFront(text, set);
    if (kBack) text = TrimBack(text, set);
    return text;
  }
  View operator()(View text) const { return (*this)(text, " "); }
};

struct Left {
  View operator()(View text, int32_t count) const {
    int64_t wanted = count;
    if (count < 0) wanted += static_cast<int64_t>(Utf8Count(text));
    return wanted <= 0 ? View() : text.substr(0, Utf8Offset(text, static_cast<size_t>(wanted)));
  }
};
struct Right {
  View operator()(View text, int32_t count) const {
    int64_t skip = count < 0 ? -int64_t{count} : static_cast<int64_t>(Utf8Count(text)) - count;
    return skip <= 0 ? text : text.substr(Utf8Offset(text, static_cast<size_t>(skip)));
  }
};

// `fill` again and again, `count` characters of it.
void AppendFill(View fill, size_t count, std::string* out) {
  for (size_t at = 0; count > 0; count--) {
    size_t step = Utf8Step(fill, at);
    out->append(fill, at, step);
    at += step;
    if (at >= fill.size()) at = 0;
  }
}
template <bool kLeft>
struct Pad {
  View operator()(const KernelCall& call, View text, int32_t length, View fill) const {
    size_t wanted = length < 0 ? 0 : static_cast<size_t>(length), have = Utf8Count(text);
    if (have >= wanted || fill.empty()) return text.substr(0, Utf8Offset(text, wanted));
    if (wanted * 4 > kTextBytesMax) TooLong();
    std::string out;
    if (!kLeft) out = text;
    AppendFill(fill, wanted - have, &out);
    if (kLeft) out += text;
    return CopyResult(call, out);
  }
  View operator()(const KernelCall& call, View text, int32_t length) const {
    return (*this)(call, text, length, " ");
  }
};

struct Replace {
  View operator()(const KernelCall& call, View text, View from, View to) const {
    if (from.empty() || text.find(from) == View::npos) return text;
    std::string out;
    for (size_t at = 0;;) {
      size_t found = text.find(from, at);
      out += text.substr(at, found - at);
      if (found == View::npos) break;
      out += to;
      at = found + from.size();
      if (out.size() > kTextBytesMax) TooLong();
    }
    return CopyResult(call, out);
  }
};
struct Translate {
  View operator()(const KernelCall& call, View text, View from, View to) const {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      size_t step = Utf8Step(text, at);
      View character = text.substr(at, step);
      at += step;
      size_t index = 0, place = 0;
      while (place < from.size() && from.substr(place, Utf8Step(from, place)) != character) {
        place += Utf8Step(from, place);
        index++;
      }
      if (place >= from.size()) {
        out += character;
        continue;
      }
      size_t target = Utf8Offset(to, index);
      if (target < to.size()) out += to.substr(target, Utf8Step(to, target));
    }
    return CopyResult(call, out);
  }
};
struct Repeat {
  View operator()(const KernelCall& call, View text, int32_t count) const {
    if (count <= 0 || text.empty()) return {};
    size_t size = text.size() * static_cast<size_t>(count);
    if (size > kTextBytesMax) TooLong();
    char* to = Reserve(call, size);
    for (size_t at = 0; at < size; at += text.size())
      std::memcpy(to + at, text.data(), text.size());
    return {to, size};
  }
};
struct Reverse {
  View operator()(const KernelCall& call, View text) const {
    char* to = Reserve(call, text.size());
    size_t end = text.size();
    for (size_t at = 0; at < text.size();) {
      size_t step = Utf8Step(text, at);
      end -= step;
      std::memcpy(to + end, text.data() + at, step);
      at += step;
    }
    return {to, text.size()};
  }
};
struct StartsWith {
  bool operator()(View text, View prefix) const { return text.substr(0, prefix.size()) == prefix; }
};

struct SplitPart {
  View operator()(View text, View separator, int32_t field) const {
    if (field == 0) Throw(sqlstate::kInvalidParameterValue, "field position must not be zero");
    if (text.empty()) return {};
    if (separator.empty()) return field == 1 || field == -1 ? text : View();
    int64_t wanted = field;
    if (field < 0) {
      int64_t fields = 1;
      for (size_t at = 0; (at = text.find(separator, at)) != View::npos; at += separator.size())
        fields++;
      wanted = fields + field + 1;
      if (wanted < 1) return {};
    }
    size_t start = 0;
    for (; wanted > 1; wanted--) {
      size_t found = text.find(separator, start);
      if (found == View::npos) return {};
      start = found + separator.size();
    }
    return text.substr(start, text.find(separator, start) - start);
  }
};

struct Overlay {
  View operator()(const KernelCall& call, View text, View with, int32_t start,
                  int32_t count) const {
    if (start <= 0) Throw(sqlstate::kSubstringError, "negative substring length not allowed");
    int32_t after = 0;
    if (__builtin_add_overflow(start, count, &after)) {
      Throw(sqlstate::kNumericValueOutOfRange, "integer out of range");
    }
    std::string out(CharactersOf(text, 1, start));
    out += with;
    out += CharactersOf(text, after, INT64_MAX);
    return CopyResult(call, out);
  }
  View operator()(const KernelCall& call, View text, View with, int32_t start) const {
    return (*this)(call, text, with, start, static_cast<int32_t>(Utf8Count(with)));
  }
};

struct Larger {
  View operator()(const KernelCall& call, View a, View b) const {
    return CompareText(a, b, call.collation) > 0 ? a : b;
  }
};
struct Smaller {
  View operator()(const KernelCall& call, View a, View b) const {
    return CompareText(a, b, call.collation) < 0 ? a : b;
  }
};

using I = int32_t;

constexpr Kernel kKernels[] = {
    {1258, "textcat", true, Map<Concatenate, View, View, View>},
    {2011, "byteacat", true, Map<Concatenate, View, View, View>},
    {1317, "length", true, Map<Length, I, View>},
    {1381, "char_length", true, Map<Length, I, View>},
    {1369, "character_length", true, Map<Length, I, View>},
    {1318, "length", true, Map<BpcharLength, I, View>},
    {1372, "char_length", true, Map<BpcharLength, I, View>},
    {1367, "character_length", true, Map<BpcharLength, I, View>},
    {2010, "length", true, Map<OctetLength, I, View>},
    {720, "octet_length", true, Map<OctetLength, I, View>},
    {1374, "octet_length", true, Map<OctetLength, I, View>},
    {1375, "octet_length", true, Map<OctetLength, I, View>},
    {1810, "bit_length", true, Map<BitLength, I, View>},
    {1811, "bit_length", true, Map<BitLength, I, View>},
    {870, "lower", true, Map<ChangeCase<&Collator::AppendLower>, View, View>},
    {871, "upper", true, Map<ChangeCase<&Collator::AppendUpper>, View, View>},
    {872, "initcap", true, Map<ChangeCase<&Collator::AppendInitcap>, View, View>},
    {877, "substr", true, Map<Substring, View, View, I, I>},
    {936, "substring", true, Map<Substring, View, View, I, I>},
    {883, "substr", true, Map<SubstringToEnd, View, View, I>},
    {937, "substring", true, Map<SubstringToEnd, View, View, I>},
    {2085, "substr", true, Map<ByteSubstring, View, View, I, I>},
    {2012, "substring", true, Map<ByteSubstring, View, View, I, I>},
    {2086, "substr", true, Map<ByteSubstringToEnd, View, View, I>},
    {2013, "substring", true, Map<ByteSubstringToEnd, View, View, I>},
    {849, "position", true, Map<Position, I, View, View>},
    {868, "strpos", true, Map<Position, I, View, View>},
    {2014, "position", true, Map<BytePosition, I, View, View>},
    {884, "btrim", true, Map<Trim<true, true>, View, View, View>},
    {885, "btrim", true, Map<Trim<true, true>, View, View>},
    {875, "ltrim", true, Map<Trim<true, false>, View, View, View>},
    {881, "ltrim", true, Map<Trim<true, false>, View, View>},
    {876, "rtrim", true, Map<Trim<false, true>, View, View, View>},
    {882, "rtrim", true, Map<Trim<false, true>, View, View>},
    {3060, "left", true, Map<Left, View, View, I>},
    {3061, "right", true, Map<Right, View, View, I>},
    {873, "lpad", true, Map<Pad<true>, View, View, I, View>},
    {879, "lpad", true, Map<Pad<true>, View, View, I>},
    {874, "rpad", true, Map<Pad<false>, View, View, I, View>},
    {880, "rpad", true, Map<Pad<false>, View, View, I>},
    {2087, "replace", true, Map<Replace, View, View, View, View>},
    {878, "translate", true, Map<Translate, View, View, View, View>},
    {1622, "repeat", true, Map<Repeat, View, View, I>},
    {3062, "reverse", true, Map<Reverse, View, View>},
    {3696, "starts_with", true, Map<StartsWith, uint8_t, View, View>},
    {2088, "split_part", true, Map<SplitPart, View, View, View, I>},
    {1404, "overlay", true, Map<Overlay, View, View, View, I, I>},
    {1405, "overlay", true, Map<Overlay, View, View, View, I>},
    {458, "text_larger", true, Map<Larger, View, View, View>},
    {459, "text_smaller", true, Map<Smaller, View, View, View>},
};

}  // namespace

std::span<const Kernel> TextKernels() {
  return kKernels;
}

}  // namespace sluice
