#include "postmaster/view_definition.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/assert.h"
#include "parser/analyze.h"
#include "parser/raw.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

// Settings that the value of an expression may depend on.
constexpr const char* kKeptSettings[] = {"TimeZone", "DateStyle", "IntervalStyle",
                                         "extra_float_digits", "bytea_output"};

// A plan and all that it points into.
struct PlannedView {
  std::shared_ptr<const Catalog> catalog;
  ParsedSql parsed;
  Arena arena;
  SessionSettings settings;
  std::shared_ptr<const ViewPlan> plan;
};

}  // namespace

std::string ViewDefinitionText(const Relation& view) {
  // What it reads may be called otherwise since.
  auto built_as = view.options.find("built_as");
  const std::string& sql = built_as == view.options.end() ? view.view_sql : built_as->second;
  Json json{{"sql", sql}, {"settings", view.view_settings}};
  if (auto refresh = view.options.find("refresh"); refresh != view.options.end())
    json["refresh"] = refresh->second;
  return json.dump();
}

Options ViewSettings(const Settings& settings) {
  Options kept;
  for (const char* name : kKeptSettings) kept[name] = settings.Text(name);
  return kept;
}

std::shared_ptr<const ViewPlan> PlanViewRelation(std::shared_ptr<const Catalog> catalog,
                                                 const Relation& view, const Settings& settings) {
  auto planned = std::make_shared<PlannedView>();
  planned->catalog = catalog;
  Settings kept = settings;
  for (const auto& [name, value] : view.view_settings)
    kept.Set(name, value, SettingSource::kSession);
  DeriveSessionSettings(kept, &planned->settings);
  planned->parsed = ParseSql(view.view_sql);
  SLUICE_ASSERT(planned->parsed.statements().size() == 1);
  std::vector<Oid> params;
  AnalyzeContext analyze;
  analyze.catalog = catalog.get();
  analyze.settings = &planned->settings;
  analyze.user = view.owner;
  analyze.arena = &planned->arena;
  analyze.param_types = &params;
  const Query* query = AnalyzeSelect(planned->parsed.statements()[0], analyze);
  planned->plan = PlanView(*query, *catalog, planned->settings);
  return {planned, planned->plan.get()};
}

std::optional<int64_t> BackfillRateLimit(const Relation& view) {
  auto option = view.options.find("backfill_rate_limit");
  if (option == view.options.end()) return std::nullopt;
  int64_t rate = -1;
  std::from_chars(option->second.data(), option->second.data() + option->second.size(), rate);
  return rate < 0 ? std::nullopt : std::optional<int64_t>(rate);
}

std::string JobKey(Oid view) {
  return fmt::format("job/{}", view);
}

std::string JobStartKey(Oid view) {
  return fmt::format("start/{}", view);
}

std::string JobFailure::Text() const {
  return Json{{"state", SqlStateText(error.state)},
              {"message", error.message},
              {"detail", error.detail},
              {"hint", error.hint},
              {"definition", definition}}
      .dump();
}

JobFailure JobFailure::Parse(std::string_view text) {
  Json json = Json::parse(text);
  JobFailure failure;
  failure.error.state = MakeSqlState(json.at("state").get<std::string>());
  failure.error.message = json.at("message");
  failure.error.detail = json.at("detail");
  failure.error.hint = json.at("hint");
  failure.definition = json.at("definition");
  return failure;
}

}  // namespace sluice
