// Rules of the house that a compiler does not know.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include "tests/harness.h"

namespace sluice::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string>& Folders() {
  static const std::vector<std::string> folders = {"common", "types",  "shm",       "catalog",
                                                   "wire",   "parser", "optimizer", "executor",
                                                   "stream", "fdw",    "postmaster"};
  return folders;
}

std::vector<fs::path> Sources(const std::string& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(SourceDirectory() + "/" + folder))
    if (entry.path().extension() == ".cc" || entry.path().extension() == ".h")
      paths.push_back(entry.path());
  return paths;
}

// folder → what the root CMakeLists.txt lets it use, and itself.
std::map<std::string, std::set<std::string>> AllowedIncludes() {
  std::string text = ReadFile(SourceDirectory() + "/CMakeLists.txt");
  std::map<std::string, std::set<std::string>> allowed;
  std::regex line(R"(sluice_library\((\w+)([^)]*)\))");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator();
       ++it) {
    std::string name = (*it)[1], rest = (*it)[2];
    std::set<std::string> uses = {name};
    std::istringstream words(rest.substr(0, rest.find("LINK")));
    for (std::string word; words >> word;)
      if (word != "USES") uses.insert(word);
    allowed[name] = uses;
  }
  return allowed;
}

TEST(Tidy, FoldersIncludeOnlyWhatTheirRowOfThePipelineAllows) {
  auto allowed = AllowedIncludes();
  ASSERT_EQ(allowed.size(), Folders().size());
  std::regex include(R"re(^#include "(\w+)/)re");
  int seen = 0;
  for (const auto& folder : Folders())
    for (const auto& path : Sources(folder)) {
      std::ifstream file(path);
      std::smatch match;
      for (std::string line; std::getline(file, line);)
        if (std::regex_search(line, match, include)) {
          seen++;
          EXPECT_TRUE(allowed[folder].contains(match[1]) || match[1] == "tests")
              << path << " includes " << match[1] << "/, which " << folder << "/ may not use";
        }
    }
  EXPECT_GT(seen, 100);
}

TEST(Tidy, EveryFolderHasAReadme) {
  for (const auto& folder : Folders())
    EXPECT_TRUE(fs::exists(SourceDirectory() + "/" + folder + "/README.md")) << folder;
}

TEST(Tidy, LinesHoldAtMostHundredColumns) {
  for (const auto& folder : Folders())
    for (const auto& path : Sources(folder)) {
      std::ifstream file(path);
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        number++;
        // Bytes of a multi-byte character count once.
        long columns =
            std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
        EXPECT_LE(columns, 100) << path << ":" << number;
      }
    }
}

TEST(Tidy, AtomicsStayInShm) {
  // A pointer to a member of shm/ names the type, but is no atomic.
  std::regex atomic(R"(std::atomic<[^<>]*> (?!ProcSlot::))");
  for (const auto& folder : Folders()) {
    if (folder == "shm") continue;
    for (const auto& path : Sources(folder)) {
      std::string text = ReadFile(path.string());
      if (path.string().ends_with("_test.cc") || path.filename() == "pch.h") continue;
      EXPECT_FALSE(std::regex_search(text, atomic)) << path;
    }
  }
}

}  // namespace
}  // namespace sluice::test
