// Every kernel and every input function against what a Postgres 15 answered (types/testdata).
#include <fstream>
#include <gtest/gtest.h>

#include "common/error.h"
#include "types/codec.h"
#include "types/collation.h"
#include "types/kernel.h"

namespace sluice {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (char c : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return hex;
}

// A field of COPY's text format; nullopt for NULL.
std::optional<std::string> FromCopy(std::string_view field) {
  if (field == "\\N") return std::nullopt;
  std::string text;
  for (size_t i = 0; i < field.size(); i++) {
    if (field[i] != '\\') {
      text.push_back(field[i]);
      continue;
    }
    constexpr std::string_view kLetters = "bfnrtv", kMeanings = "\b\f\n\r\t\v";
    size_t known = kLetters.find(field[++i]);
    text.push_back(known == std::string_view::npos ? field[i] : kMeanings[known]);
  }
  return text;
}

std::vector<std::vector<std::string>> ReadTable(const char* name) {
  std::string path = __FILE__;
  path = path.substr(0, path.rfind('/')) + "/testdata/" + name;
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields;
    size_t start = 0;
    for (size_t tab; (tab = line.find('\t', start)) != std::string::npos; start = tab + 1) {
      fields.push_back(line.substr(start, tab - start));
    }
    fields.push_back(line.substr(start));
    rows.push_back(std::move(fields));
  }
  EXPECT_GT(rows.size(), 500u) << path;
  return rows;
}

SessionSettings Settings() {
  SessionSettings settings;
  strcpy(settings.time_zone, "America/New_York");
  return settings;
}

const Collator* DefaultCollator() {
  RegisterCollation({kDefaultCollationOid, CollationProvider::kLibc, "C.UTF-8", ""});
  return FindCollator(kDefaultCollationOid);
}

struct Argument {
  Oid type;
  std::string text;
};

struct Case {
  Oid function;
  std::vector<Argument> arguments;
  Oid result_type;
  std::optional<std::string> result;
  std::string state;  // "" = no error
  std::string message;
};

std::vector<Case> ReadCases() {
  std::vector<Case> cases;
  for (const auto& row : ReadTable("kernels.tsv")) {
    Case c{static_cast<Oid>(std::stoul(row[0])), {},
           static_cast<Oid>(std::stoul(row[2])), FromCopy(row[3]),
           FromCopy(row[4]).value_or(""),        FromCopy(row[5]).value_or("")};
    std::string_view rest = row[1];
    while (!rest.empty()) {
      std::string_view one = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      size_t equals = one.find('=');
      c.arguments.push_back({static_cast<Oid>(std::stoul(std::string(one.substr(0, equals)))),
                             FromHex(one.substr(equals + 1))});
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

std::string Describe(const Case& c) {
  std::string text = fmt::format("{} ({})(", FindKernel(c.function)->name, c.function);
  for (const Argument& argument : c.arguments) text += fmt::format("[{}] ", argument.text);
  return text + ")";
}

// Regular expressions may be refused, never answered otherwise.
bool MayRefuse(const Case& c, const Error& error) {
  return std::string_view(FindKernel(c.function)->name).find("regex") != std::string_view::npos &&
         error.state == sqlstate::kFeatureNotSupported;
}

// For testdata/generate.py.
TEST(PostgresAnswers, DISABLED_ListKernels) {
  for (const Kernel* kernel : AllKernels()) printf("%u %s\n", kernel->function, kernel->name);
}

TEST(PostgresAnswers, EveryKernelAnswersAsPostgresDoes) {
  SessionSettings settings = Settings();
  const Collator* collation = DefaultCollator();
  size_t refused = 0;
  std::vector<Case> cases = ReadCases();
  for (const Case& c : cases) {
    const Kernel* kernel = FindKernel(c.function);
    ASSERT_NE(kernel, nullptr) << c.function;
    Arena arena;
    EvalContext context{&arena, &settings};
    std::vector<Column> columns;
    std::vector<const Column*> args;
    uint8_t is_null = 0;
    alignas(16) char slot[16] = {};
    Column out{c.result_type, PhysicalOf(c.result_type), ~size_t{0}, &is_null, slot};
    try {
      for (const Argument& a : c.arguments) {
        columns.push_back(MakeConstantColumn(
            a.type, ParseText(a.type, -1, a.text, settings, &arena), false, &arena));
      }
      for (const Column& column : columns) args.push_back(&column);
      kernel->fn({args, &out, nullptr, 1, collation, &context});
    } catch (const QueryError& e) {
      if (MayRefuse(c, e.error)) {
        refused++;
        continue;
      }
      EXPECT_EQ(c.state, SqlStateText(e.error.state)) << Describe(c) << ": " << e.error.message;
      EXPECT_EQ(c.message, e.error.message) << Describe(c);
      continue;
    }
    EXPECT_EQ(c.state, "") << Describe(c) << ": " << c.message;
    if (!c.state.empty()) continue;
    ASSERT_EQ(is_null == 0, c.result.has_value()) << Describe(c);
    if (is_null) continue;
    std::string text;
    AppendText(out, 0, settings, &text);
    EXPECT_EQ(*c.result, text) << Describe(c);
  }
  EXPECT_LT(refused * 50, cases.size());
}

// The same cases, many rows at a time: all rows, and every third row only.
TEST(PostgresAnswers, KernelsAnswerAlikeForManyRows) {
  SessionSettings settings = Settings();
  const Collator* collation = DefaultCollator();
  std::map<Oid, std::vector<Case>> by_function;
  for (Case& c : ReadCases()) {
    if (c.state.empty() && c.result.has_value()) by_function[c.function].push_back(std::move(c));
  }
  for (auto& [function, cases] : by_function) {
    const Kernel* kernel = FindKernel(function);
    if (std::string_view(kernel->name).find("regex") != std::string_view::npos) continue;
    Arena arena;
    EvalContext context{&arena, &settings};
    size_t rows = std::min(cases.size(), kBatchRows);
    std::vector<Column> columns;
    for (size_t i = 0; i < cases[0].arguments.size(); i++) {
      Oid type = cases[0].arguments[i].type;
      Column column{type, PhysicalOf(type)};
      column.data = arena.Allocate(16 * rows);
      for (size_t row = 0; row < rows; row++) {
        std::string_view wire = ParseText(type, -1, cases[row].arguments[i].text, settings, &arena);
        DecodeBinaryValue(type, wire, &column, row);
      }
      columns.push_back(column);
    }
    std::vector<const Column*> args;
    for (const Column& column : columns) args.push_back(&column);
    std::vector<uint32_t> some;
    for (uint32_t row = 0; row < rows; row += 3) some.push_back(row);
    for (bool all : {true, false}) {
      Oid type = cases[0].result_type;
      Column out{type, PhysicalOf(type)};
      out.data = arena.Allocate(16 * rows);
      out.nulls = arena.NewArray<uint8_t>(rows).data();
      kernel->fn(
          {args, &out, all ? nullptr : some.data(), all ? rows : some.size(), collation, &context});
      for (size_t row = 0; row < rows; row += all ? 1 : 3) {
        std::string text;
        ASSERT_FALSE(out.IsNull(row));
        AppendText(out, row, settings, &text);
        EXPECT_EQ(*cases[row].result, text) << Describe(cases[row]);
      }
    }
  }
}

// Input texts that we read differently, each with why.
const std::map<std::string, const char*> kKnownDifferences = {
    {"1999-08-06 00:00:00 MSK", "abbreviations whose offset changed over time are not known"},
    {"1 day ago 2", "ago in the middle is taken for an error"},
};

TEST(PostgresAnswers, EveryTextIsReadAsPostgresReadsIt) {
  SessionSettings settings = Settings();
  for (const auto& row : ReadTable("codecs.tsv")) {
    Oid type = static_cast<Oid>(std::stoul(row[0]));
    int32_t typmod = std::stoi(row[1]);
    std::string text = FromHex(row[2]),
                label = fmt::format("type {} typmod {} [{}]", type, typmod, text);
    if (kKnownDifferences.contains(text)) continue;
    std::optional<std::string> shown = FromCopy(row[3]), state = FromCopy(row[5]);
    Arena arena;
    std::string_view wire;
    try {
      wire = ParseText(type, typmod, text, settings, &arena);
    } catch (const QueryError& e) {
      EXPECT_EQ(state.value_or("no error"), SqlStateText(e.error.state))
          << label << ": " << e.error.message;
      EXPECT_EQ(FromCopy(row[6]).value_or(""), e.error.message) << label;
      continue;
    }
    EXPECT_FALSE(state.has_value()) << label << ": " << row[6];
    if (state.has_value()) continue;
    EXPECT_EQ(row[4], ToHex(wire)) << label;
    Column column = MakeConstantColumn(type, wire, false, &arena);
    std::string out, binary;
    AppendText(column, 0, settings, &out);
    AppendBinary(column, 0, &binary);
    EXPECT_EQ(*shown, out) << label;
    EXPECT_EQ(row[4], ToHex(binary)) << label;
  }
}

}  // namespace
}  // namespace sluice
