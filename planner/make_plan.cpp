#include "planner/make_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "planner/candidate.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

using Phases = std::variant<std::vector<Phase>, Infeasible>;

void require_meaningful(const PlanOptions& options, const Cluster& cluster) {
  if (options.global_batch_size < 1) {
    throw InvalidInput("global batch size", "must be >= 1", std::to_string(options.global_batch_size));
  }
  if (options.num_steps < 1) throw InvalidInput("number of steps", "must be >= 1", std::to_string(options.num_steps));
  if (options.partitioner != "exact" && options.partitioner != "pipetransformer-greedy") {
    throw InvalidInput("partitioner", "must be exact or pipetransformer-greedy", options.partitioner);
  }
  if (cluster.devices.empty()) throw InvalidInput("cluster " + cluster.name, "must have a device", "none");
}

int world_size_of(const Cluster& cluster) { return static_cast<int>(cluster.devices.size()); }

/// Pipeline lengths of the static method: those that leave no rank idle.
std::vector<int> static_lengths(int world_size) {
  std::vector<int> lengths;
  for (int p = std::min(2, world_size); p <= world_size; ++p) {
    if (world_size % p == 0) lengths.push_back(p);
  }
  return lengths;
}

std::variant<Phase, Infeasible> best_of_lengths(const Profile& profile, const Cluster& cluster,
                                                const PlanOptions& options, const std::vector<int>& lengths) {
  std::optional<Phase> best;
  std::string misses;
  for (const int p : lengths) {
    auto result = best_phase(profile, cluster, options, p, /*first_trainable_layer=*/0);
    if (const auto* none = std::get_if<Infeasible>(&result)) {
      if (!misses.empty()) misses += "; ";
      misses += none->reason;
      continue;
    }
    Phase& phase = std::get<Phase>(result);
    if (!best || phase.predicted.iteration_ns < best->predicted.iteration_ns) best = std::move(phase);
  }
  if (best) return *best;
  return Infeasible{misses};
}

/// Phase after phase along the forecast of the freeze rule.
Phases elastic_phases(const Profile& profile, const Cluster& cluster, const PlanOptions& options, const Phase& start) {
  std::vector<Phase> phases{start};
  for (const FreezeEvent& event : forecast_cap(num_blocks(profile.model), options.num_steps, options.freeze)) {
    auto next = next_elastic_phase(profile, cluster, options, phases.back(),
                                   first_trainable_layer(profile.model, event.frozen_layers), event.from_step);
    if (const auto* none = std::get_if<Infeasible>(&next)) {
      return Infeasible{fmt::format("with {} frozen layers: {}", event.frozen_layers, none->reason)};
    }
    phases.push_back(std::get<Phase>(std::move(next)));
  }
  return phases;
}

Phases phases_by_method(const Profile& profile, const Cluster& cluster, const PlanOptions& options) {
  const bool is_elastic = options.method == "pipetransformer";
  std::vector<int> lengths;
  if (options.method == "data-parallel") {
    lengths = {1};
  } else if (options.method == "static" || is_elastic) {
    lengths = static_lengths(world_size_of(cluster));
  } else {
    throw InvalidInput("method", "must be data-parallel, static or pipetransformer", options.method);
  }
  auto start = best_of_lengths(profile, cluster, options, lengths);
  if (const auto* none = std::get_if<Infeasible>(&start)) return *none;
  const Phase& first = std::get<Phase>(start);
  if (is_elastic) return elastic_phases(profile, cluster, options, first);
  return std::vector<Phase>{first};
}

}  // namespace

PlanResult make_plan(const Profile& profile, const Cluster& cluster, const PlanOptions& options) {
  require_meaningful(options, cluster);
  auto phases = phases_by_method(profile, cluster, options);
  if (const auto* none = std::get_if<Infeasible>(&phases)) return *none;
  TrainingPlan plan;
  plan.method = options.method;
  plan.world_size = world_size_of(cluster);
  plan.global_batch_size = options.global_batch_size;
  plan.num_steps = options.num_steps;
  plan.optimizer = options.optimizer;
  plan.dtype = options.dtype;
  plan.memory_limited = !options.ignore_memory_limit;
  plan.phases = std::get<std::vector<Phase>>(std::move(phases));
  plan.provenance.model_name = profile.model.name;
  plan.provenance.model_fingerprint = fingerprint(profile.model);
  plan.provenance.version = std::string(FROSTPIPE_VERSION);
  return plan;
}

}  // namespace frostpipe
