// Text made of other things: chr, md5, to_hex, quoting, encode and decode, concat.
#include "types/bpchar.h"
#include "types/codec.h"
#include "types/kernel_helpers.h"
#include "types/kernel_registry.h"
#include "types/md5.h"
#include "types/number_text.h"
#include "types/utf8.h"

namespace sluice {
namespace {

using View = std::string_view;

struct Chr {
  View operator()(const KernelCall& call, int32_t code) const {
    if (code < 0) Throw(sqlstate::kInvalidParameterValue, "character number must be positive");
    if (code == 0) Throw(sqlstate::kProgramLimitExceeded, "null character not permitted");
    if (code > 0x10FFFF) {
      Throw(sqlstate::kProgramLimitExceeded, "requested character too large for encoding: {}",
            code);
    }
    if (code >= 0xD800 && code <= 0xDFFF) {
      Throw(sqlstate::kProgramLimitExceeded, "requested character not valid for encoding: {}",
            code);
    }
    char bytes[4];
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (size == 1) {
      bytes[0] = static_cast<char>(code);
    } else {
      for (size_t i = size - 1; i > 0; i--, code >>= 6)
        bytes[i] = static_cast<char>(0x80 | (code & 0x3F));
      bytes[0] = static_cast<char>((0xF00 >> size & 0xFF) | code);
    }
    return CopyResult(call, View(bytes, size));
  }
};
struct Ascii {
  int32_t operator()(View text) const {
    if (text.empty()) return 0;
    size_t size = Utf8Step(text, 0);
    auto first = static_cast<uint8_t>(text[0]);
    if (size == 1) return first;
    int32_t code = first & (0x7F >> size);
    for (size_t i = 1; i < size; i++) code = code << 6 | (text[i] & 0x3F);
    return code;
  }
};
struct Md5 {
  View operator()(const KernelCall& call, View text) const {
    return CopyResult(call, Md5Hex(text));
  }
};
struct ToHex {
  View operator()(const KernelCall& call, int32_t value) const {
    return CopyResult(call, fmt::format("{:x}", static_cast<uint32_t>(value)));
  }
  View operator()(const KernelCall& call, int64_t value) const {
    return CopyResult(call, fmt::format("{:x}", static_cast<uint64_t>(value)));
  }
};

std::string Quoted(View text) {
  bool backslash = text.find('\\') != View::npos;
  std::string out = backslash ? "E'" : "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') out.push_back(c);
    out.push_back(c);
  }
  out.push_back('\'');
  return out;
}
struct QuoteLiteral {
  View operator()(const KernelCall& call, View text) const {
    return CopyResult(call, Quoted(text));
  }
};
void QuoteNullable(const KernelCall& call) {
  const Column& text = *call.args[0];
  ForEachRow(call, [&](size_t i) {
    call.out->Data<View>()[i] =
        text.IsNull(i) ? View("NULL") : CopyResult(call, Quoted(text.At<View>(i)));
  });
}

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string ToBase64(View bytes) {
  std::string out;
  size_t line = 0;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    size_t have = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; j++)
      group = group << 8 | (j < have ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; j++)
      out.push_back(j <= have ? kBase64[group >> (18 - 6 * j) & 63] : '=');
    line += 4;
    if (line == 76) {
      out.push_back('\n');
      line = 0;
    }
  }
  return out;
}
std::string LowerAscii(View text) {
  std::string out;
  for (char c : text) out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  return out;
}
[[noreturn]] void UnknownEncoding(View name) {
  Throw(sqlstate::kInvalidParameterValue, "unrecognized encoding: \"{}\"", name);
}
std::string FromBase64(View text) {
  std::string out;
  uint32_t group = 0;
  int have = 0, padding = 0;
  for (char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    uint32_t value = 0;
    if (c == '=') {
      if (padding == 0 && have < 2)
        Throw(sqlstate::kInvalidParameterValue, "unexpected \"=\" while decoding base64 sequence");
      padding++;
    } else {
      const char* at = c == 0 ? nullptr : std::strchr(kBase64, c);
      if (padding > 0 || at == nullptr) {
        Throw(sqlstate::kInvalidParameterValue,
              "invalid symbol \"{}\" found while decoding base64 sequence", c);
      }
      value = static_cast<uint32_t>(at - kBase64);
    }
    group = group << 6 | value;
    if (++have < 4) continue;
    for (int i = 0; i < 3 - padding; i++) out.push_back(static_cast<char>(group >> (16 - 8 * i)));
    group = 0;
    have = 0;
    // Padding ends the data; more symbols are found by the test above.
  }
  if (have != 0) {
    throw QueryError(
        MakeError(sqlstate::kInvalidParameterValue, "invalid base64 end sequence")
            .Hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
  }
  return out;
}
// As bytea's escape format, which must not start with \\x here.
std::string FromEscape(View text) {
  if (text.substr(0, 2) == "\\x")
    Throw(sqlstate::kInvalidTextRepresentation, "invalid input syntax for type bytea");
  return ParseBytea(text);
}
struct Encode {
  View operator()(const KernelCall& call, View bytes, View format) const {
    std::string name = LowerAscii(format), out;
    if (name == "hex") {
      AppendBytea(bytes, false, &out);
      out.erase(0, 2);
    } else if (name == "base64") {
      out = ToBase64(bytes);
    } else if (name == "escape") {
      for (char c : bytes) {
        if (c == '\\')
          out += "\\\\";
        else if (c == 0 || (c & 0x80))
          out += fmt::format("\\{:03o}", static_cast<uint8_t>(c));
        else
          out.push_back(c);
      }
    } else {
      UnknownEncoding(format);
    }
    return CopyResult(call, out);
  }
};
struct Decode {
  View operator()(const KernelCall& call, View text, View format) const {
    std::string name = LowerAscii(format);
    if (name == "hex") return CopyResult(call, ParseBytea("\\x" + std::string(text)));
    if (name == "base64") return CopyResult(call, FromBase64(text));
    if (name == "escape") return CopyResult(call, FromEscape(text));
    UnknownEncoding(format);
  }
};

// concat and concat_ws: every argument by its type's output function; NULLs are left out.
void Concat(const KernelCall& call) {
  std::string out;
  ForEachRow(call, [&](size_t i) {
    out.clear();
    for (const Column* arg : call.args) {
      if (!arg->IsNull(i)) AppendText(*arg, i, *call.context->settings, &out);
    }
    call.out->Data<View>()[i] = CopyResult(call, out);
  });
}
void ConcatWithSeparator(const KernelCall& call) {
  std::string out;
  ForEachRow(call, [&](size_t i) {
    if (call.args[0]->IsNull(i)) return SetNull(call, i);
    out.clear();
    bool first = true;
    for (const Column* arg : call.args.subspan(1)) {
      if (arg->IsNull(i)) continue;
      if (!first) out += call.args[0]->At<View>(i);
      first = false;
      AppendText(*arg, i, *call.context->settings, &out);
    }
    call.out->Data<View>()[i] = CopyResult(call, out);
  });
}
// text || anything, anything || text: by the cast to text, which differs from the output of bool
// and bpchar.
void ConcatPair(const KernelCall& call) {
  std::string out;
  ForEachRow(call, [&](size_t i) {
    out.clear();
    for (const Column* arg : call.args) {
      if (arg->type == kBoolOid)
        out += arg->At<uint8_t>(i) ? "true" : "false";
      else if (arg->type == kBpcharOid)
        out += TrimBpchar(arg->At<View>(i));
      else
        AppendText(*arg, i, *call.context->settings, &out);
    }
    call.out->Data<View>()[i] = CopyResult(call, out);
  });
}

constexpr Kernel kKernels[] = {
    {1621, "chr", true, Map<Chr, View, int32_t>},
    {1620, "ascii", true, Map<Ascii, int32_t, View>},
    {2311, "md5", true, Map<Md5, View, View>},
    {2321, "md5", true, Map<Md5, View, View>},
    {2089, "to_hex", true, Map<ToHex, View, int32_t>},
    {2090, "to_hex", true, Map<ToHex, View, int64_t>},
    {1283, "quote_literal", true, Map<QuoteLiteral, View, View>},
    {1289, "quote_nullable", false, QuoteNullable},
    {1946, "encode", true, Map<Encode, View, View, View>},
    {1947, "decode", true, Map<Decode, View, View, View>},
    {3058, "concat", false, Concat},
    {3059, "concat_ws", false, ConcatWithSeparator},
    {2003, "textanycat", true, ConcatPair},
    {2004, "anytextcat", true, ConcatPair},
};

}  // namespace

std::span<const Kernel> TextFormatKernels() {
  return kKernels;
}

}  // namespace sluice
