#include "types/collation.h"

#include <gnu/libc-version.h>
#include <locale.h>
#include <string.h>
#include <unicode/ubrk.h>
#include <unicode/ucasemap.h>
#include <unicode/uchar.h>
#include <unicode/ucol.h>
#include <unicode/ustring.h>
#include <wctype.h>

#include "common/error.h"
#include "types/compare_values.h"
#include "types/sort_key.h"
#include "types/utf8.h"

namespace sluice {
namespace {

bool IsAsciiAlnum(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}
char AsciiLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
char AsciiUpper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}

class CCollator : public Collator {
 public:
  int Compare(std::string_view a, std::string_view b) const override { return CompareBytes(a, b); }
  bool is_c() const override { return true; }
};

// A terminated copy for the C library, on the stack if it is short.
class Terminated {
 public:
  explicit Terminated(std::string_view text) {
    char* to = inline_;
    if (text.size() >= sizeof inline_) {
      heap_.resize(text.size());
      to = heap_.data();
    }
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to[text.size()] = 0;
    text_ = to;
  }
  const char* c_str() const { return text_; }

 private:
  char inline_[256];
  std::string heap_;
  const char* text_;
};

char32_t DecodeUtf8(std::string_view text, size_t at, size_t length) {
  auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[at + i])); };
  switch (length) {
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
    default:
      return byte(0);
  }
}

void AppendUtf8(char32_t code, std::string* out) {
  char bytes[U8_MAX_LENGTH];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, code);
  out->append(bytes, static_cast<size_t>(size));
}

class LibcCollator : public Collator {
 public:
  LibcCollator(locale_t locale, bool bytes) : locale_(locale), bytes_(bytes) {}
  ~LibcCollator() override { freelocale(locale_); }
  int Compare(std::string_view a, std::string_view b) const override {
    if (bytes_) return CompareBytes(a, b);
    if (a == b) return 0;
    int order = strcoll_l(Terminated(a).c_str(), Terminated(b).c_str(), locale_);
    return order != 0 ? order : CompareBytes(a, b);
  }
  bool is_c() const override { return bytes_; }
  void AppendSortKey(std::string_view text, std::string* out) const {
    Terminated terminated(text);
    size_t start = out->size(), size = text.size() * 4 + 16;
    for (;;) {
      out->resize(start + size);
      size_t needed = strxfrm_l(out->data() + start, terminated.c_str(), size, locale_);
      if (needed < size) return out->resize(start + needed);
      size = needed + 1;
    }
  }
  void AppendLower(std::string_view text, std::string* out) const override {
    Map(text, out, [this](wint_t c, bool) { return towlower_l(c, locale_); });
  }
  void AppendUpper(std::string_view text, std::string* out) const override {
    Map(text, out, [this](wint_t c, bool) { return towupper_l(c, locale_); });
  }
  void AppendInitcap(std::string_view text, std::string* out) const override {
    Map(text, out, [this](wint_t c, bool in_word) {
      return in_word ? towlower_l(c, locale_) : towupper_l(c, locale_);
    });
  }

 private:
  template <typename Fn>
  void Map(std::string_view text, std::string* out, Fn&& fn) const {
    bool in_word = false;
    for (size_t at = 0; at < text.size();) {
      size_t step = Utf8Step(text, at);
      auto c = static_cast<wint_t>(DecodeUtf8(text, at, step));
      if (step == 1 && c >= 0x80)
        out->push_back(text[at]);  // a stray byte
      else
        AppendUtf8(static_cast<char32_t>(fn(c, in_word)), out);
      in_word = iswalnum_l(c, locale_) != 0;
      at += step;
    }
  }

  locale_t locale_;
  bool bytes_;
};

class IcuCollator : public Collator {
 public:
  IcuCollator(UCollator* collator, std::string locale)
      : collator_(collator), locale_(std::move(locale)) {}
  ~IcuCollator() override { ucol_close(collator_); }
  int Compare(std::string_view a, std::string_view b) const override {
    if (a == b) return 0;
    UErrorCode status = U_ZERO_ERROR;
    int order = ucol_strcollUTF8(collator_, a.data(), static_cast<int32_t>(a.size()), b.data(),
                                 static_cast<int32_t>(b.size()), &status);
    if (U_FAILURE(status))
      Throw(sqlstate::kInternalError, "collation failed: {}", u_errorName(status));
    return order != 0 ? order : CompareBytes(a, b);
  }
  void AppendSortKey(std::string_view text, std::string* out) const {
    std::vector<UChar> wide(text.size() + 1);
    int32_t length = 0;
    UErrorCode status = U_ZERO_ERROR;
    u_strFromUTF8(wide.data(), static_cast<int32_t>(wide.size()), &length, text.data(),
                  static_cast<int32_t>(text.size()), &status);
    if (U_FAILURE(status))
      Throw(sqlstate::kInternalError, "collation failed: {}", u_errorName(status));
    size_t start = out->size();
    int32_t size = ucol_getSortKey(collator_, wide.data(), length, nullptr, 0);
    out->resize(start + static_cast<size_t>(size));
    ucol_getSortKey(collator_, wide.data(), length, reinterpret_cast<uint8_t*>(out->data() + start),
                    size);
    out->pop_back();  // its terminator
  }
  void AppendLower(std::string_view text, std::string* out) const override {
    Map(text, out,
        [this](UChar* to, int32_t room, const UChar* from, int32_t size, UErrorCode* status) {
          return u_strToLower(to, room, from, size, locale_.c_str(), status);
        });
  }
  void AppendUpper(std::string_view text, std::string* out) const override {
    Map(text, out,
        [this](UChar* to, int32_t room, const UChar* from, int32_t size, UErrorCode* status) {
          return u_strToUpper(to, room, from, size, locale_.c_str(), status);
        });
  }
  void AppendInitcap(std::string_view text, std::string* out) const override {
    Map(text, out,
        [this](UChar* to, int32_t room, const UChar* from, int32_t size, UErrorCode* status) {
          return u_strToTitle(to, room, from, size, nullptr, locale_.c_str(), status);
        });
  }

 private:
  template <typename Fn>
  void Map(std::string_view text, std::string* out, Fn&& fn) const {
    std::u16string from(text.size() + 1, 0), to(text.size() * 3 + 8, 0);
    UErrorCode status = U_ZERO_ERROR;
    int32_t from_size = 0, out_size = 0;
    u_strFromUTF8WithSub(from.data(), static_cast<int32_t>(from.size()), &from_size, text.data(),
                         static_cast<int32_t>(text.size()), 0xFFFD, nullptr, &status);
    int32_t size = fn(to.data(), static_cast<int32_t>(to.size()), from.data(), from_size, &status);
    std::string bytes(static_cast<size_t>(size) * 3 + 1, 0);
    u_strToUTF8(bytes.data(), static_cast<int32_t>(bytes.size()), &out_size, to.data(), size,
                &status);
    if (U_FAILURE(status))
      Throw(sqlstate::kInternalError, "case conversion failed: {}", u_errorName(status));
    out->append(bytes, 0, static_cast<size_t>(out_size));
  }

  UCollator* collator_;
  std::string locale_;
};

struct Registered {
  CollationInfo info;
  std::unique_ptr<Collator> collator;
  std::string refusal;  // why there is no collator
};

std::map<Oid, Registered>& Registry() {
  static auto* registry = new std::map<Oid, Registered>();
  return *registry;
}

std::unique_ptr<Collator> OpenLibc(const CollationInfo& info, std::string* refusal) {
  std::string locale = info.locale;
  if (locale == "C" || locale == "POSIX") return std::make_unique<CCollator>();
  locale_t opened = newlocale(LC_COLLATE_MASK | LC_CTYPE_MASK, info.locale, nullptr);
  if (opened == nullptr) {
    *refusal = fmt::format("collation locale \"{}\" is not installed on this host", info.locale);
    return nullptr;
  }
  // C.UTF-8 orders by code point: by bytes. It has no version.
  bool bytes = locale.substr(0, 2) == "C.";
  const char* version = gnu_get_libc_version();
  if (!bytes && info.version[0] != 0 && strcmp(info.version, version) != 0) {
    freelocale(opened);
    *refusal =
        fmt::format("collation locale \"{}\" has version {} on the servers and {} on this host",
                    info.locale, info.version, version);
    return nullptr;
  }
  return std::make_unique<LibcCollator>(opened, bytes);
}

std::unique_ptr<Collator> OpenIcu(const CollationInfo& info, std::string* refusal) {
  UErrorCode status = U_ZERO_ERROR;
  UCollator* opened = ucol_open(info.locale, &status);
  if (U_FAILURE(status)) {
    *refusal =
        fmt::format("ICU locale \"{}\" cannot be opened: {}", info.locale, u_errorName(status));
    return nullptr;
  }
  UVersionInfo parts;
  char version[U_MAX_VERSION_STRING_LENGTH];
  ucol_getVersion(opened, parts);
  u_versionToString(parts, version);
  if (info.version[0] != 0 && strcmp(info.version, version) != 0) {
    ucol_close(opened);
    *refusal = fmt::format("ICU locale \"{}\" has version {} on the servers and {} on this host",
                           info.locale, info.version, version);
    return nullptr;
  }
  return std::make_unique<IcuCollator>(opened, info.locale);
}

// The collator, or nullptr and the reason.
const Collator* Open(Oid collation, std::string* refusal) {
  static const CCollator c_collator;
  if (collation == kInvalidOid || collation == kCCollationOid || collation == kPosixCollationOid)
    return &c_collator;
  auto found = Registry().find(collation);
  if (found == Registry().end()) {
    *refusal = fmt::format("collation with OID {} is not known here", collation);
    return nullptr;
  }
  Registered& entry = found->second;
  if (entry.collator == nullptr && entry.refusal.empty()) {
    switch (entry.info.provider) {
      case CollationProvider::kC:
        return &c_collator;
      case CollationProvider::kLibc:
        entry.collator = OpenLibc(entry.info, &entry.refusal);
        break;
      case CollationProvider::kIcu:
        entry.collator = OpenIcu(entry.info, &entry.refusal);
        break;
    }
  }
  *refusal = entry.refusal;
  return entry.collator.get();
}

}  // namespace

void AppendSortKey(const Collator& collator, std::string_view text, std::string* out) {
  if (collator.is_c())
    out->append(text);
  else if (auto* libc = dynamic_cast<const LibcCollator*>(&collator))
    libc->AppendSortKey(text, out);
  else
    dynamic_cast<const IcuCollator&>(collator).AppendSortKey(text, out);
}

void Collator::AppendLower(std::string_view text, std::string* out) const {
  for (char c : text) out->push_back(AsciiLower(c));
}

void Collator::AppendUpper(std::string_view text, std::string* out) const {
  for (char c : text) out->push_back(AsciiUpper(c));
}

void Collator::AppendInitcap(std::string_view text, std::string* out) const {
  bool in_word = false;
  for (char c : text) {
    out->push_back(in_word ? AsciiLower(c) : AsciiUpper(c));
    in_word = IsAsciiAlnum(c);
  }
}

void RegisterCollation(const CollationInfo& info) {
  auto found = Registry().find(info.oid);
  if (found == Registry().end()) {
    Registry()[info.oid].info = info;
    return;
  }
  Registered& entry = found->second;
  bool same = entry.info.provider == info.provider && strcmp(entry.info.locale, info.locale) == 0 &&
              strcmp(entry.info.version, info.version) == 0;
  if (same) return;
  // Plans in this process may still point at the old one.
  if (entry.collator != nullptr) entry.collator.release();
  entry = Registered{info, nullptr, {}};
}

const Collator* FindCollator(Oid collation) {
  std::string refusal;
  const Collator* collator = Open(collation, &refusal);
  if (collator == nullptr) Refuse("{}", refusal);
  return collator;
}

bool CanCollate(Oid collation) {
  std::string refusal;
  return Open(collation, &refusal) != nullptr;
}

}  // namespace sluice
