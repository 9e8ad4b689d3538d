#include "planner/published/paper_auto_pipe.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "plan/reconfiguration.h"
#include "planner/search/best_phase.h"
#include "planner/search/partition.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

double largest_stage(std::span<const double> sizes, int num_stages) {
  double largest = 0;
  for (const LayerRange& stage : partition_pipetransformer_greedy(sizes, num_stages)) {
    largest = std::max(largest, std::accumulate(sizes.begin() + stage.begin, sizes.begin() + stage.end, 0.0));
  }
  return largest;
}

}  // namespace

int paper_pipeline_length(std::span<const double> parameters_in_millions, int frozen_units, int initial_length) {
  if (initial_length < 1) throw InvalidInput("initial length", "must be >= 1", std::to_string(initial_length));
  if (frozen_units < 0 || static_cast<std::size_t>(frozen_units) > parameters_in_millions.size()) {
    throw InvalidInput("frozen units", "must be from 0 to " + std::to_string(parameters_in_millions.size()),
                       std::to_string(frozen_units));
  }
  const double limit = largest_stage(parameters_in_millions, initial_length);
  const auto active = parameters_in_millions.subspan(static_cast<std::size_t>(frozen_units));
  int length = initial_length;
  while (length >= 2 && largest_stage(active, length / 2) <= limit) length /= 2;
  return length;
}

std::variant<Phase, Infeasible> next_published_phase(const PlanningProblem& problem, const Phase& current,
                                                     int first_trainable_layer, int from_step) {
  const auto& [profile, cluster, options] = problem;
  std::vector<double> millions;
  for (const Layer& layer : profile.model.layers) millions.push_back(static_cast<double>(layer.parameter_count) / 1e6);
  const int initial_length = devices_to_use(cluster, options) / options.tensor_parallel_size;
  const int frozen_units =
      frostpipe::first_trainable_layer(profile.model, frozen_blocks(profile.model, first_trainable_layer));
  const int length = paper_pipeline_length(millions, frozen_units, initial_length);
  auto next = best_phase(problem, std::min(length, current.layout.pipeline_parallel_size), first_trainable_layer);
  if (auto* phase = std::get_if<Phase>(&next)) {
    phase->from_step = from_step;
    phase->predicted.transformation_ns =
        reconfiguration_ns(diff(current, *phase, profile.model, options.optimizer, options.dtype), cluster);
  }
  return next;
}

}  // namespace frostpipe
