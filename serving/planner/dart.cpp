#include "serving/planner/dart.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "serving/planner/sized_plan.h"

namespace frostpipe {
namespace {

/// Removes virtual devices as long as every model keeps the smallest throughput per weight. The optimum does not
/// determine how much more the other models get.
void shrink(SizedPlan& plain) {
  for (std::size_t n = 0; n < plain.pools.models.size(); ++n) {
    const auto& model = plain.pools.models[n];
    double spare = -plain.sizes.value * model.weight * (1 - 1e-9);
    for (const auto& [index, sizes] : plain.sizes.pipelines[n])
      spare += requests_per_second(model.candidates[index], sizes);
    for (auto& [index, sizes] : plain.sizes.pipelines[n]) {
      const double rate = model.candidates[index].pools[0].requests_per_second;
      const int fewer = std::min(sizes[0], static_cast<int>(spare / rate));
      sizes[0] -= fewer;
      spare -= fewer * rate;
    }
  }
}

/// Returns the devices of each model, [model][class]: those that its plan without pipelines uses, and an equal share of
/// those left over, rounded down.
std::vector<std::vector<int>> share_out(const ServingProblem& problem, const SizedPlan& plain) {
  const std::size_t num_models = problem.models.size();
  std::vector<std::vector<int>> devices(num_models, std::vector<int>(problem.classes.size(), 0));
  for (std::size_t k = 0; k < problem.classes.size(); ++k) {
    int left = problem.classes[k].count;
    for (std::size_t n = 0; n < num_models; ++n) {
      devices[n][k] = devices_of(plain.sizes.pipelines[n], plain.pools.models[n].candidates, static_cast<int>(k));
      left -= devices[n][k];
    }
    for (auto& of_model : devices) of_model[k] += left / static_cast<int>(num_models);
  }
  return devices;
}

/// Returns the problem of one model on these devices of each class; classes without devices are left out.
ServingProblem part_of(const ServingProblem& problem, std::size_t n, const std::vector<int>& devices) {
  ServingProblem part = problem;
  part.models = {problem.models[n]};
  part.classes.clear();
  part.memory_limit_bytes.clear();
  for (std::size_t k = 0; k < devices.size(); ++k) {
    if (devices[k] == 0) continue;
    part.classes.push_back(problem.classes[k]);
    part.classes.back().count = devices[k];
    if (!problem.memory_limit_bytes.empty()) part.memory_limit_bytes.push_back(problem.memory_limit_bytes[k]);
  }
  return part;
}

/// Multiplies the pools of the model's pipelines by `copies`.
ServedModel copied(ServedModel model, int copies) {
  for (auto& pipeline : model.pipelines) {
    for (auto& partition : pipeline.partitions) {
      partition.num_virtual_devices *= copies;
      partition.requests_per_second *= copies;
    }
    pipeline.requests_per_second *= copies;
  }
  model.requests_per_second *= copies;
  return model;
}

void append(ServedModel& model, const ServedModel& more) {
  model.pipelines.insert(model.pipelines.end(), more.pipelines.begin(), more.pipelines.end());
  model.requests_per_second += more.requests_per_second;
}

/// Plans one model on its devices: if there are at least two classes, as many copies as possible of a group of one
/// device of each class, then whole models on the remaining devices. Pipelines are empty if nothing meets the
/// objective.
ServedModel pair_up(const ServingProblem& problem, double building, std::size_t n, std::vector<int> devices) {
  ServedModel model{.name = problem.models[n].name};
  const auto present = std::ranges::count_if(devices, [](int count) { return count > 0; });
  int copies = 0;
  if (present > 1) {
    copies = std::numeric_limits<int>::max();
    std::vector<int> group(devices.size(), 0);
    for (std::size_t k = 0; k < devices.size(); ++k) {
      if (devices[k] == 0) continue;
      copies = std::min(copies, devices[k]);
      group[k] = 1;
    }
    const ServingProblem part = part_of(problem, n, group);
    const auto sized = size_plan(part, {building});
    if (const auto* found = std::get_if<SizedPlan>(&sized)) {
      model = copied(plan_of(part, {building}, *found).models[0], copies);
    }
    for (int& count : devices) count = std::max(0, count - copies);
  }
  const auto rest = without_pipelines(part_of(problem, n, devices));
  if (rest.classes.empty()) return model;
  const auto sized = size_plan(rest, {building});
  if (const auto* found = std::get_if<SizedPlan>(&sized)) {
    const auto more = plan_of(rest, {building}, *found).models[0];
    if (model.pipelines.empty())
      model = more;
    else
      append(model, more);
  }
  return model;
}

}  // namespace

ServingPlanResult dart_plan(const ServingProblem& problem) {
  if (problem.objective == ServingObjective::cost)
    throw InvalidInput("--required-rate: cannot be used with ppipe-dart, which does not minimize the price");
  const ServingProblem whole_models = without_pipelines(problem);
  const auto building = building_rates(whole_models);
  auto plain = size_plan(whole_models, building);
  if (const auto* none = std::get_if<Infeasible>(&plain)) return *none;
  auto& sized = std::get<SizedPlan>(plain);
  shrink(sized);
  const auto devices = share_out(problem, sized);
  ServingPlan plan = plan_of(problem, building, sized);
  plan.method = ServingMethod::ppipe_dart;
  plan.objective_bound = std::nullopt;
  plan.objective_value = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < problem.models.size(); ++n) {
    plan.models[n] = pair_up(problem, building[n], n, devices[n]);
    if (plan.models[n].pipelines.empty())
      return Infeasible{.reason =
                            fmt::format("model {}: no device is left for it; try more devices", plan.models[n].name)};
    plan.objective_value =
        std::min(plan.objective_value, plan.models[n].requests_per_second / problem.models[n].weight);
  }
  return plan;
}

}  // namespace frostpipe
