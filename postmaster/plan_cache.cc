#include "postmaster/plan_cache.h"

#include "optimizer/evaluate.h"

namespace sluice {
namespace {

constexpr size_t kPlansMax = 64;  // routes: shards, mostly

}  // namespace

void PlanCache::Prepare(const Query& query, const PlanRequest& request) {
  if (state_ == State::kNew) {  // most statements are run once
    state_ = State::kUsedOnce;
    return;
  }
  state_ = State::kUseless;
  if (!HasReusableRoute(query)) return;
  arena_.emplace(blocks_, 16 * 1024);
  PlanRequest mine = request;
  mine.arena = &*arena_;
  routes_.emplace(*FoldConstantsInQuery(query, {request.session, &*arena_}), mine);
  formats_.assign(request.result_formats.begin(), request.result_formats.end());
  allow_pass_through_ = request.allow_pass_through;
  state_ = State::kReady;
}

const PlannedStatement* PlanCache::Find(const Query& query, const PlanRequest& request) {
  if (state_ == State::kNew || state_ == State::kUsedOnce) Prepare(query, request);
  if (state_ != State::kReady || !request.copy_options.empty() ||
      request.allow_pass_through != allow_pass_through_ ||
      !std::equal(formats_.begin(), formats_.end(), request.result_formats.begin(),
                  request.result_formats.end()))
    return nullptr;
  std::optional<RouteKey> route = routes_->Find(request);
  if (!route) return nullptr;
  for (const auto& [key, plan] : plans_)
    if (key == *route) return plan;
  if (plans_.size() == kPlansMax) return nullptr;
  PlanRequest mine = request;
  mine.arena = &*arena_;
  const PlannedStatement* plan = PlanQuery(query, mine);
  plans_.emplace_back(std::move(*route), plan);
  return plan;
}

}  // namespace sluice
