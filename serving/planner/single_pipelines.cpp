#include <algorithm>
#include <cmath>
#include <limits>

#include "serving/planner/pool_sizes.h"

namespace frostpipe {
namespace {

/// The devices that a choice uses, per class, and its pipelines: one per model considered so far.
struct Choice {
  std::vector<int> devices;
  std::vector<SizedPipeline> pipelines;
};

bool is_no_more(const std::vector<int>& one, const std::vector<int>& other) {
  return std::ranges::equal(one, other, std::less_equal<>());
}

/// Adds a choice unless another one needs at most as many devices of every class. Removes the choices that need at
/// least as many devices of every class as the new one.
void add(std::vector<Choice>& choices, Choice choice) {
  for (const auto& other : choices)
    if (is_no_more(other.devices, choice.devices)) return;
  std::erase_if(choices, [&](const Choice& other) { return is_no_more(choice.devices, other.devices); });
  choices.push_back(std::move(choice));
}

/// Returns the smallest choices in which one pipeline of one model reaches this throughput in requests per second.
std::vector<Choice> choices_for(const PoolProblem& problem, const PoolProblem::OfModel& model, double throughput) {
  std::vector<Choice> choices;
  for (std::size_t c = 0; c < model.candidates.size(); ++c) {
    const auto& pools = model.candidates[c].pools;
    Choice choice{.devices = std::vector<int>(problem.num_devices.size(), 0),
                  .pipelines = {{.candidate = static_cast<int>(c)}}};
    bool fits = true;
    for (const auto& pool : pools) {
      const double size = std::max(1.0, std::ceil(throughput / pool.requests_per_second - 1e-9));
      fits = fits && size <= static_cast<double>(problem.num_devices[pool.device_class]) * pool.share;
      if (!fits) break;
      choice.pipelines[0].sizes.push_back(static_cast<int>(size));
      choice.devices[pool.device_class] += (static_cast<int>(size) + pool.share - 1) / pool.share;
    }
    if (fits && is_no_more(choice.devices, problem.num_devices)) add(choices, std::move(choice));
  }
  return choices;
}

/// Returns the choices for all models at throughput `value` per weight, or at the required throughputs.
std::vector<Choice> choices_for_all(const PoolProblem& problem, double value) {
  std::vector<Choice> all{{.devices = std::vector<int>(problem.num_devices.size(), 0), .pipelines = {}}};
  for (const auto& model : problem.models) {
    const double throughput =
        problem.objective == ServingObjective::cost ? model.required_requests_per_second : value * model.weight;
    std::vector<Choice> next;
    for (const auto& more : choices_for(problem, model, throughput)) {
      for (const auto& before : all) {
        Choice choice = before;
        for (std::size_t k = 0; k < choice.devices.size(); ++k) choice.devices[k] += more.devices[k];
        if (!is_no_more(choice.devices, problem.num_devices)) continue;
        choice.pipelines.push_back(more.pipelines[0]);
        add(next, std::move(choice));
      }
    }
    all = std::move(next);
  }
  return all;
}

PoolSizes sizes_of(const Choice& choice) {
  PoolSizes sizes;
  for (const auto& pipeline : choice.pipelines) sizes.pipelines.push_back({pipeline});
  return sizes;
}

std::optional<PoolSizes> cheapest(const PoolProblem& problem) {
  std::optional<PoolSizes> best;
  for (const auto& choice : choices_for_all(problem, 0)) {
    double cost = 0;
    for (std::size_t k = 0; k < choice.devices.size(); ++k) cost += problem.prices[k] * choice.devices[k];
    if (best && best->value <= cost) continue;
    best = sizes_of(choice);
    best->value = cost;
  }
  return best;
}

/// Returns the least throughput per weight of the choice's models.
double value_of(const PoolProblem& problem, const Choice& choice) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < problem.models.size(); ++n) {
    const auto& [index, sizes] = choice.pipelines[n];
    const auto& model = problem.models[n];
    least = std::min(least, requests_per_second(model.candidates[index], sizes) / model.weight);
  }
  return least;
}

}  // namespace

std::optional<PoolSizes> size_single_pipelines(const PoolProblem& problem) {
  if (problem.objective == ServingObjective::cost) return cheapest(problem);
  // Bisects between a value that some choice reaches and one that none reaches.
  auto choices = choices_for_all(problem, 0);
  if (choices.empty()) return std::nullopt;
  Choice best = choices.front();
  double reached = value_of(problem, best), beyond = reached * 2;
  while (!(choices = choices_for_all(problem, beyond)).empty()) {
    best = choices.front();
    reached = value_of(problem, best);
    beyond = reached * 2;
  }
  while (beyond - reached > 1e-7 * reached) {
    const double middle = (reached + beyond) / 2;
    choices = choices_for_all(problem, middle);
    if (choices.empty()) {
      beyond = middle;
    } else {
      best = choices.front();
      reached = std::max(middle, value_of(problem, best));
    }
  }
  PoolSizes sizes = sizes_of(best);
  sizes.value = value_of(problem, best);
  return sizes;
}

}  // namespace frostpipe
