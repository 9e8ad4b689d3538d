#include "planner/serving/make_serving_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/serving/dart.h"
#include "planner/serving/pool_sizes.h"
#include "planner/serving/sized_plan.h"
#include "profiles/error.h"
#include "profiles/error_values.h"

namespace frostpipe {
namespace {

void require_classes(const ServingProblem& problem) {
  if (problem.classes.empty()) throw InvalidInput("there is no device to serve with: the cluster is empty");
  for (const auto& device_class : problem.classes) {
    if (device_class.count < 1)
      throw InvalidInput(fmt::format("class {}", device_class.name), "must have at least one device",
                         std::to_string(device_class.count));
    if (problem.objective == ServingObjective::cost && !device_class.price_per_hour)
      throw InvalidInput(
          fmt::format("class {}: has no price, which the cheapest plan needs; give the cluster's file a "
                      "price_per_hour of it",
                      device_class.name));
    const auto knows = [&](const ModelToServe& model) {
      return !measured_shares(model.profile, device_class.name).empty();
    };
    if (std::ranges::none_of(problem.models, knows)) {
      std::vector<std::string> known;
      for (const auto& model : problem.models)
        for (const auto& times : model.profile.times)
          if (std::ranges::find(known, times.device_type) == known.end()) known.push_back(times.device_type);
      throw InvalidInput(fmt::format("class {}: no profile was measured on it; they know {}",
                                     in_quotes(device_class.name), in_quotes(known)));
    }
  }
}

void require_models(const ServingProblem& problem) {
  if (problem.models.empty()) throw InvalidInput("there is no model to serve");
  for (const auto& model : problem.models) {
    const auto place = fmt::format("model {}", model.name);
    if (!(std::isfinite(model.weight) && model.weight > 0))
      throw InvalidInput(place + ": weight", "must be > 0", fmt::format("{}", model.weight));
    if (model.objective_ns < 1)
      throw InvalidInput(place + ": latency objective", "must be > 0", format_duration(model.objective_ns));
    if (problem.objective == ServingObjective::cost && !(model.required_requests_per_second > 0))
      throw InvalidInput(place + ": required requests per second", "must be > 0 for the cheapest plan",
                         fmt::format("{}", model.required_requests_per_second));
  }
}

/// Why sizes could not be found although every model has candidates.
Infeasible too_few_devices(const ServingProblem& problem) {
  std::string classes;
  for (const auto& device_class : problem.classes)
    classes += fmt::format("{}{} {}", classes.empty() ? "" : " and ", device_class.count, device_class.name);
  if (problem.objective == ServingObjective::cost)
    return {.reason = fmt::format("{} cannot serve the required requests per second; try more devices", classes)};
  return {.reason = fmt::format("{} are too few to serve {} models at once: each needs pools of its own; try more "
                                "devices or fewer models",
                                classes, problem.models.size())};
}

}  // namespace

std::variant<SizedPlan, Infeasible> size_plan(const ServingProblem& problem, const std::vector<double>& building) {
  SizedPlan plan;
  plan.pools.objective = problem.objective;
  plan.pools.most_partitions = problem.most_partitions;
  for (const auto& device_class : problem.classes) {
    plan.pools.num_devices.push_back(device_class.count);
    plan.pools.prices.push_back(device_class.price_per_hour.value_or(0));
  }
  for (std::size_t n = 0; n < problem.models.size(); ++n) {
    const auto& model = problem.models[n];
    auto candidates = pipeline_candidates(problem, model, building[n]);
    if (candidates.empty())
      return Infeasible{.reason = fmt::format("model {}: {}", model.name, why_no_candidate(problem, model))};
    plan.pools.models.push_back({.weight = model.weight,
                                 .required_requests_per_second = model.required_requests_per_second,
                                 .candidates = std::move(candidates)});
  }
  auto sizes = size_pools(plan.pools);
  if (!sizes) return too_few_devices(problem);
  plan.sizes = std::move(*sizes);
  return plan;
}

ServingProblem without_pipelines(ServingProblem problem) {
  problem.most_partitions = 1;
  problem.most_share = 1;
  return problem;
}

std::vector<double> building_rates(const ServingProblem& problem) {
  std::vector<double> rates;
  bool all_known = true;
  for (const auto& model : problem.models) {
    rates.push_back(model.building_requests_per_second.value_or(0));
    all_known = all_known && model.building_requests_per_second.has_value();
  }
  if (all_known) return rates;
  ServingProblem plain = without_pipelines(problem);
  plain.objective = ServingObjective::throughput;
  std::erase_if(plain.models, [&](const ModelToServe& model) { return pipeline_candidates(plain, model, 0).empty(); });
  if (plain.models.empty()) return rates;
  const auto sized = size_plan(plain, std::vector<double>(plain.models.size(), 0));
  if (!std::holds_alternative<SizedPlan>(sized)) return rates;
  const auto& found = std::get<SizedPlan>(sized);
  for (std::size_t n = 0; n < plain.models.size(); ++n)
    for (std::size_t i = 0; i < problem.models.size(); ++i)
      if (problem.models[i].name == plain.models[n].name && !problem.models[i].building_requests_per_second)
        for (const auto& [index, sizes] : found.sizes.pipelines[n])
          rates[i] += requests_per_second(found.pools.models[n].candidates[index], sizes);
  return rates;
}

ServingPlanResult make_serving_plan(ServingMethod method, const ServingProblem& problem) {
  require_models(problem);
  require_classes(problem);
  const auto building = building_rates(problem);
  if (method == ServingMethod::ppipe_dart) return dart_plan(problem, building);
  const ServingProblem solved = method == ServingMethod::ppipe_np ? without_pipelines(problem) : problem;
  auto sized = size_plan(solved, building);
  if (const auto* none = std::get_if<Infeasible>(&sized)) return *none;
  ServingPlan plan = plan_of(problem, building, std::get<SizedPlan>(sized));
  plan.method = method;
  return plan;
}

}  // namespace frostpipe
