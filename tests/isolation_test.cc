// Transactions side by side: scripted interleavings (tests/isolation/*.txt) whose every answer on
// Sluice, with the rows spread over servers, is that of one Postgres.
//
//   name: SQL   the session runs it and has an answer
//   name& SQL   … and must wait for another session
//   name=       the answer of what has waited
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "tests/harness.h"

namespace sluice::test {
namespace {

constexpr double kMustWaitSeconds = 0.3;
constexpr double kAnswerSeconds = 20;

std::string TextOf(const std::optional<Answer>& answer) {
  if (!answer) return "no answer\n";
  if (!answer->sqlstate.empty()) return fmt::format("{} {}\n", answer->sqlstate, answer->message);
  return answer->command_tag + "\n" + answer->Text(true);
}

class Script {
 public:
  explicit Script(const std::string& path) : text_(ReadFile(path)) {}

  // The script with all answers.
  std::string Run(const std::string& url) {
    Client client(url);
    client.Query("DROP TABLE account");
    client.Must("CREATE TABLE account (id int PRIMARY KEY, v int NOT NULL)");
    client.Must("INSERT INTO account SELECT g, 0 FROM generate_series(1, 6) g");
    std::map<std::string, std::unique_ptr<Client>> sessions;
    std::string transcript;
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == '#') continue;
      size_t at = line.find_first_of(":&=");
      auto& session = sessions[line.substr(0, at)];
      if (session == nullptr) session = std::make_unique<Client>(url);
      transcript += line + "\n";
      if (line[at] != '=') session->Send(line.substr(at + 2));
      if (line[at] == '&')
        transcript += session->Await(kMustWaitSeconds) ? "did not wait\n" : "waits\n";
      else
        transcript += TextOf(session->Await(kAnswerSeconds));
    }
    return transcript;
  }

 private:
  std::string text_;
};

std::vector<std::string> Scripts() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(SourceDirectory() + "/tests/isolation"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Isolation : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster(Cluster::Options{.shards = 3});
    Client(cluster_->ShardUrl(1)).Must("CREATE DATABASE reference");
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  static Cluster* cluster_;
};
Cluster* Isolation::cluster_ = nullptr;

TEST_P(Isolation, AnswersAsOnePostgres) {
  Script script(SourceDirectory() + "/tests/isolation/" + GetParam() + ".txt");
  std::string expected = script.Run(cluster_->ShardUrl(1, "reference"));
  EXPECT_EQ(expected.find("did not wait"), std::string::npos) << expected;
  EXPECT_EQ(expected.find("no answer"), std::string::npos) << expected;
  EXPECT_EQ(script.Run(cluster_->Url()), expected);
}

INSTANTIATE_TEST_SUITE_P(Scripts, Isolation, ::testing::ValuesIn(Scripts()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::test
