// Functions of text that need the catalog's words: quote_ident, format; pg_size_pretty.
#include "catalog/quote.h"
#include "postmaster/catalog_kernels.h"
#include "types/codec.h"
#include "types/kernel_helpers.h"
#include "types/numeric.h"
#include "types/utf8.h"

namespace sluice {
namespace {

using View = std::string_view;

struct QuoteIdent {
  View operator()(const KernelCall& call, View name) const {
    return CopyResult(call, QuoteIdentifier(name));
  }
};

// One specifier of format(): %[position$][flags][width]type.
struct Specifier {
  size_t position = 0;  // 1: the first argument after the format; 0: the next
  bool left = false;
  bool width_from_argument = false;
  size_t width_position = 0;
  int64_t width = 0;
  char type = 0;
};

class Formatter {
 public:
  Formatter(const KernelCall& call, size_t row) : call_(call), row_(row) {}

  std::string Run(View format) {
    rest_ = format;
    while (!rest_.empty()) {
      char c = Take();
      if (c != '%') {
        out_ += c;
      } else if (!rest_.empty() && rest_[0] == '%') {
        out_ += Take();
      } else {
        Emit(ReadSpecifier());
      }
    }
    return out_;
  }

 private:
  char Take() {
    char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  [[noreturn]] static void Unterminated() {
    throw QueryError(
        MakeError(sqlstate::kInvalidParameterValue, "unterminated format() type specifier")
            .Hint("For a single \"%\" use \"%%\"."));
  }
  void RequireMore() const {
    if (rest_.empty()) Unterminated();
  }

  // -1: there are no digits.
  int64_t ReadNumber() {
    int64_t number = -1;
    while (!rest_.empty() && isdigit(static_cast<unsigned char>(rest_[0]))) {
      number = std::max<int64_t>(number, 0) * 10 + (Take() - '0');
      if (number > INT32_MAX) Throw(MakeSqlState("22003"), "number is out of range");
    }
    RequireMore();
    return number;
  }
  [[noreturn]] static void BadPosition() {
    Throw(sqlstate::kInvalidParameterValue,
          "format specifies argument 0, but arguments are numbered from 1");
  }

  Specifier ReadSpecifier() {
    Specifier s;
    RequireMore();
    int64_t number = ReadNumber();
    if (number >= 0 && rest_[0] == '$') {
      if (number == 0) BadPosition();
      s.position = static_cast<size_t>(number);
      Take();
      number = -1;
      RequireMore();
    }
    if (number < 0) {
      while (rest_[0] == '-') {
        s.left = true;
        Take();
        RequireMore();
      }
      if (rest_[0] == '*') {
        Take();
        s.width_from_argument = true;
        RequireMore();
        int64_t position = ReadNumber();
        if (position >= 0) {
          if (rest_[0] != '$')
            Throw(sqlstate::kInvalidParameterValue,
                  "width argument position must be ended by \"$\"");
          if (position == 0) BadPosition();
          s.width_position = static_cast<size_t>(position);
          Take();
        }
      } else {
        number = ReadNumber();
      }
    }
    s.width = std::max<int64_t>(number, 0);
    RequireMore();
    s.type = Take();
    if (s.type != 's' && s.type != 'I' && s.type != 'L')
      throw QueryError(MakeError(sqlstate::kInvalidParameterValue,
                                 "unrecognized format() type specifier \"{}\"", s.type)
                           .Hint("For a single \"%\" use \"%%\"."));
    return s;
  }

  const Column& Argument(size_t position) {
    if (position != 0)
      next_ = position;
    else
      next_++;
    if (next_ >= call_.args.size())
      Throw(sqlstate::kInvalidParameterValue, "too few arguments for format()");
    return *call_.args[next_];
  }

  void Emit(Specifier s) {
    if (s.width_from_argument) {
      const Column& width = Argument(s.width_position);
      if (!width.IsNull(row_)) {
        std::string text;
        AppendText(width, row_, *call_.context->settings, &text);
        s.width = std::stoll(text);
      }
    }
    if (s.width < 0) {
      s.left = true;
      s.width = -s.width;
    }
    const Column& value = Argument(s.position);
    std::string text;
    if (value.IsNull(row_)) {
      if (s.type == 'I')
        Throw(MakeSqlState("22004"), "null values cannot be formatted as an SQL identifier");
      if (s.type == 'L') text = "NULL";
    } else {
      AppendText(value, row_, *call_.context->settings, &text);
      if (s.type == 'I') text = QuoteIdentifier(text);
      if (s.type == 'L') text = QuoteLiteral(text);
    }
    size_t length = Utf8Count(text), width = static_cast<size_t>(s.width);
    std::string padding(width > length ? width - length : 0, ' ');
    out_ += s.left ? text + padding : padding + text;
  }

  const KernelCall& call_;
  size_t row_;
  View rest_;
  size_t next_ = 0;  // the argument used last
  std::string out_;
};

void Format(const KernelCall& call) {
  ForEachRow(call, [&](size_t i) {
    if (call.args[0]->IsNull(i)) return SetNull(call, i);
    call.out->Data<View>()[i] = CopyResult(call, Formatter(call, i).Run(call.args[0]->At<View>(i)));
  });
}

// Rounded to the largest unit in which it is below 10240 (20480 halves).
struct SizePretty {
  View operator()(const KernelCall& call, int64_t size) const {
    static constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    constexpr int64_t kLimit = 10 * 1024;
    auto magnitude = [](int64_t n) {
      return n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
    };
    if (magnitude(size) < kLimit) return CopyResult(call, fmt::format("{} bytes", size));
    // Halves of the next unit, so that the last step can round.
    size_t unit = 1;
    int64_t halves = size / 512;
    while (magnitude(halves) >= 2 * kLimit - 1 && unit + 1 < std::size(kUnits)) {
      halves /= 1024;
      unit++;
    }
    int64_t rounded = (halves + (halves < 0 ? -1 : 1)) / 2;
    return CopyResult(call, fmt::format("{} {}", rounded, kUnits[unit]));
  }
};

constexpr Kernel kKernels[] = {
    {1282, "quote_ident", true, Map<QuoteIdent, View, View>},
    {3539, "format", false, Format},
    {3540, "format", false, Format},
    {2288, "pg_size_pretty", true, Map<SizePretty, View, int64_t>},
};

}  // namespace

std::span<const Kernel> TextKernelsWithCatalog() {
  return kKernels;
}

}  // namespace sluice
