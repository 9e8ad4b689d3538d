#include "serving/planner/make_serving_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "serving/plan/limits.h"
#include "serving/planner/dart.h"
#include "serving/planner/pool_sizes.h"
#include "serving/planner/sized_plan.h"

namespace frostpipe {
namespace {

/// Checks that the model has times on one of the cluster's classes, for a whole device or a share that pools may have.
void require_times(const ServingProblem& problem, const ModelToServe& model) {
  if (has_times(problem, model)) return;
  std::vector<std::string> classes, known;
  for (const auto& device_class : problem.classes) classes.push_back(device_class.name);
  for (const auto& times : model.profile.times)
    known.push_back(times.share == 1 ? times.device_type : fmt::format("1/{} {}", times.share, times.device_type));
  throw InvalidInput(
      fmt::format("model {}: no profile of it was measured on a device of the cluster ({}), or on a part "
                  "down to 1/{} of one, only on {}",
                  in_quotes(model.name), in_quotes(classes), problem.max_share, in_quotes(known)));
}

void require_classes(const ServingProblem& problem) {
  if (problem.classes.empty()) throw InvalidInput("there is no device to serve with: the cluster is empty");
  for (const auto& device_class : problem.classes) {
    if (device_class.count < 1)
      throw InvalidInput(fmt::format("class {}", device_class.name), "must have at least one device",
                         std::to_string(device_class.count));
    if (problem.objective == ServingObjective::cost && !device_class.price_per_hour)
      throw InvalidInput(
          fmt::format("class {}: has no price, which the cheapest plan needs; add its price_per_hour to the "
                      "cluster's file",
                      device_class.name));
    const auto knows = [&](const ModelToServe& model) {
      return !measured_shares(model.profile, device_class.name).empty();
    };
    if (std::ranges::none_of(problem.models, knows)) {
      std::vector<std::string> known;
      for (const auto& model : problem.models)
        for (const auto& times : model.profile.times)
          if (std::ranges::find(known, times.device_type) == known.end()) known.push_back(times.device_type);
      throw InvalidInput(fmt::format("class {}: no profile was measured on it, only on {}",
                                     in_quotes(device_class.name), in_quotes(known)));
    }
  }
  for (const auto& model : problem.models) require_times(problem, model);
}

void require_models(const ServingProblem& problem) {
  if (problem.models.empty()) throw InvalidInput("there is no model to serve");
  for (const auto& model : problem.models) {
    const auto place = fmt::format("model {}", model.name);
    if (!(kLeastWeight <= model.weight && model.weight <= kMaxWeight))
      throw InvalidInput(place + ": weight", fmt::format("must be >= {:g} and <= {:g}", kLeastWeight, kMaxWeight),
                         fmt::format("{}", model.weight));
    if (model.objective_ns < 1 || model.objective_ns > kMaxServingNs)
      throw InvalidInput(place + ": latency objective",
                         fmt::format("must be > 0 and <= {}", format_duration(kMaxServingNs)),
                         format_duration(model.objective_ns));
    if (!(model.required_requests_per_second <= kMaxServingRate))
      throw InvalidInput(place + ": required requests per second", fmt::format("must be <= {:g}", kMaxServingRate),
                         fmt::format("{}", model.required_requests_per_second));
    if (problem.objective == ServingObjective::cost && !(model.required_requests_per_second > 0))
      throw InvalidInput(place + ": required requests per second", "must be > 0 for the cheapest plan",
                         fmt::format("{}", model.required_requests_per_second));
  }
}

/// Explains why no sizes were found although every model has candidates.
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

/// Sets missing rates to the models' throughputs in a plan of the highest throughput for all models that can be served.
void fill_in_rates(ServingProblem problem, std::vector<double>& rates) {
  if (std::ranges::all_of(rates, [](double rate) { return rate > 0; })) return;
  problem.objective = ServingObjective::throughput;
  std::vector<std::size_t> served;
  std::vector<double> building;
  std::vector<ModelToServe> models;
  for (std::size_t n = 0; n < rates.size(); ++n) {
    if (pipeline_candidates(problem, problem.models[n], rates[n]).empty()) continue;
    served.push_back(n);
    building.push_back(rates[n]);
    models.push_back(problem.models[n]);
  }
  if (served.empty()) return;
  problem.models = std::move(models);
  const auto sized = size_plan(problem, building);
  if (!std::holds_alternative<SizedPlan>(sized)) return;
  const auto& found = std::get<SizedPlan>(sized);
  for (std::size_t i = 0; i < served.size(); ++i) {
    if (rates[served[i]] > 0) continue;
    for (const auto& [index, sizes] : found.sizes.pipelines[i])
      rates[served[i]] += requests_per_second(found.pools.models[i].candidates[index], sizes);
  }
}

}  // namespace

std::variant<SizedPlan, Infeasible> size_plan(const ServingProblem& problem, const std::vector<double>& building) {
  SizedPlan plan;
  plan.pools.objective = problem.objective;
  plan.pools.max_partitions = problem.max_partitions;
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
  problem.max_partitions = 1;
  problem.max_share = 1;
  return problem;
}

ServingProblem as_solved(ServingProblem problem, ServingMethod method) {
  if (method == ServingMethod::ppipe_np) return without_pipelines(std::move(problem));
  if (method == ServingMethod::ppipe_dart) problem.max_share = 1;
  return problem;
}

std::vector<double> building_rates(const ServingProblem& problem) {
  std::vector<double> rates(problem.models.size(), 0);
  for (std::size_t n = 0; n < rates.size(); ++n) rates[n] = problem.models[n].building_requests_per_second.value_or(0);
  fill_in_rates(without_pipelines(problem), rates);
  fill_in_rates(problem, rates);
  return rates;
}

ServingPlanResult make_serving_plan(ServingMethod method, const ServingProblem& problem) {
  require_models(problem);
  require_classes(problem);
  const ServingProblem solved = as_solved(problem, method);
  if (method == ServingMethod::ppipe_dart) return dart_plan(solved);
  const auto building = building_rates(solved);
  auto sized = size_plan(solved, building);
  if (const auto* none = std::get_if<Infeasible>(&sized)) return *none;
  ServingPlan plan = plan_of(problem, building, std::get<SizedPlan>(sized));
  plan.method = method;
  return plan;
}

}  // namespace frostpipe
