#include "planner/published/published_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "plan/batch.h"
#include "plan/memory.h"
#include "planner/published/best_of_lengths.h"
#include "planner/published/pipedream.h"
#include "planner/search/best_phase.h"
#include "planner/search/candidate.h"

namespace frostpipe {
namespace {

/// Returns the best phase with this partition.
std::variant<Phase, Infeasible> with_partition(const PlanningProblem& problem, Partition partition) {
  PlanOptions options = problem.options;
  options.partition = std::move(partition);
  return best_phase({problem.profile, problem.cluster, options}, static_cast<int>(options.partition.size()),
                    /*first_trainable_layer=*/0);
}

/// Returns the time of the forward and backward of one micro-batch through a stage. `layers` are the costs at its size
/// on the stage's device.
Nanoseconds stage_ns(const std::vector<LayerCost>& layers, const Model& model, LayerRange stage,
                     const Recompute& recompute) {
  Nanoseconds sum = 0;
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    const LayerCost& cost = layers[layer];
    sum += cost.forward_ns * (is_recomputed(recompute, model.layers[layer].kind) ? 2 : 1) + cost.weight_gradient_ns +
           (layer > 0 ? cost.input_gradient_ns : 0);
  }
  return sum;
}

int devices_per_node(const Cluster& cluster) {
  const int node = cluster.devices.front().node;
  return static_cast<int>(std::count_if(cluster.devices.begin(), cluster.devices.end(),
                                        [&](const Device& device) { return device.node == node; }));
}

}  // namespace

std::variant<Partition, Infeasible> equal_split(const Model& model, int num_stages) {
  const int blocks = num_blocks(model), layers = static_cast<int>(model.layers.size());
  if (num_stages == 1) return Partition{{0, layers}};
  if (blocks < num_stages) return Infeasible{fmt::format("p = {}: the model has {} blocks", num_stages, blocks)};
  Partition partition;
  int begin = 0;
  for (const SampleRange& range : split_evenly(blocks, num_stages)) {
    const int end = range.end == blocks ? layers : first_trainable_layer(model, range.end);
    partition.push_back({begin, end});
    begin = end;
  }
  return partition;
}

std::optional<MegatronSizes> megatron_sizes(const MegatronNeeds& needs, double share) {
  std::optional<MegatronSizes> best;
  int largest = 0;
  for (const int t : needs.tensor_parallel_sizes)
    largest = t <= needs.devices_per_node ? std::max(largest, t) : largest;
  for (const int t : needs.tensor_parallel_sizes) {
    if (t > largest) continue;
    for (int p = 1; p <= (t == largest ? std::min(needs.blocks, needs.devices / t) : 1); ++p) {
      if (needs.blocks % p != 0 || needs.devices % (t * p) != 0) continue;
      if (needs.state_bytes / (t * p) > share * needs.memory_bytes) continue;
      const auto size = [](const MegatronSizes& sizes) {
        return std::pair(sizes.tensor_parallel_size * sizes.pipeline_parallel_size, sizes.pipeline_parallel_size);
      };
      if (const MegatronSizes sizes{t, p}; !best || size(sizes) < size(*best)) best = sizes;
    }
  }
  return best;
}

std::variant<Phase, Infeasible> equal_split_phase(const PlanningProblem& problem) {
  BestOfLengths best;
  for_each_length(problem, [&](int p) {
    auto partition = equal_split(problem.profile.model, p);
    if (auto* none = std::get_if<Infeasible>(&partition))
      best.add(std::move(*none));
    else
      best.add(with_partition(problem, std::get<Partition>(std::move(partition))));
  });
  return std::move(best).result();
}

std::variant<Phase, Infeasible> ptd_p_phase(const PlanningProblem& problem) {
  const auto& [profile, cluster, wanted] = problem;
  PlanOptions options = wanted;
  options.schedule = "1F1B";
  if (!options.recompute) options.recompute = RecomputeMode::layers;
  double parameters = 0;
  for (std::size_t layer = 0; layer < profile.model.layers.size(); ++layer)
    parameters += static_cast<double>(held_parameter_count(profile.model, static_cast<int>(layer)));
  const double states = parameters * static_cast<double>(kept_bytes_per_value(options.dtype) *
                                                         (2 + optimizer_moments(options.optimizer)));
  const auto limit = cluster.devices.front().memory_limit_bytes;
  const double memory =
      limit && !options.ignore_memory_limit ? static_cast<double>(*limit) : std::numeric_limits<double>::infinity();
  const int devices = devices_to_use(cluster, options);
  const auto chosen =
      megatron_sizes({.state_bytes = states,
                      .blocks = num_blocks(profile.model),
                      .devices = devices,
                      .devices_per_node = devices_per_node(cluster),
                      .memory_bytes = memory,
                      .tensor_parallel_sizes = measured_tensor_sizes(profile, options.sequence_parallel)});
  if (!chosen)
    return Infeasible{fmt::format("weights, gradients and optimizer state of {} exceed 60 % of the memory for every t "
                                  "x p that divides blocks and devices",
                                  format_bytes(static_cast<Bytes>(states))),
                      true};
  options.tensor_parallel_size = chosen->tensor_parallel_size;
  const int p = chosen->pipeline_parallel_size, d = devices / (p * chosen->tensor_parallel_size);
  const Partition partition = std::get<Partition>(equal_split(profile.model, p));
  const int samples = std::max(1, options.global_batch_size / d);
  LayerCosts costs(profile, options.dtype, options.sequence_parallel);
  std::vector<std::pair<double, int>> by_time;  // time of equation 1, number of micro-batches
  Infeasible why{"no micro-batch size was measured"};
  for (int b = 1; b <= samples; ++b) {
    if (samples % b != 0) continue;
    try {
      const auto& layers =
          costs.at(cluster.devices.front().type, b, tokens_of(options, profile), chosen->tensor_parallel_size);
      Nanoseconds slowest = 0;
      for (const LayerRange& stage : partition)
        slowest = std::max(slowest, stage_ns(layers, profile.model, stage, options.recompute));
      by_time.emplace_back((static_cast<double>(samples) / b + p - 1) * static_cast<double>(slowest), samples / b);
    } catch (const InvalidInput& error) {
      why.reason = error.what();
    }
  }
  std::sort(by_time.begin(), by_time.end());
  int smallest = 0;  // most micro-batches that did not fit so far; their reason is reported
  for (const auto& [time, m] : by_time) {
    options.num_micro_batches = m;
    auto phase = with_partition({profile, cluster, options}, partition);
    if (std::holds_alternative<Phase>(phase)) return phase;
    if (m > smallest) why = std::get<Infeasible>(phase);
    smallest = std::max(smallest, m);
  }
  return Infeasible{fmt::format("t = {}, {}", chosen->tensor_parallel_size, why.reason), why.lacks_memory};
}

namespace {

/// Returns 2BW's steady-state time of a micro-batch: for the slowest stage, compute and messages, or the reduction of
/// its gradients over m. Returns none if a rank has no memory for a second version of its weights.
std::optional<Nanoseconds> steady_ns(const Candidate& candidate, const PlanningProblem& problem, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const Phase& phase = candidate.phase;
  const int m = phase.num_micro_batches, b = options.global_batch_size / (phase.layout.data_parallel_size * m);
  Nanoseconds slowest = 0;
  for (int k = 0; k < phase.layout.pipeline_parallel_size; ++k) {
    const int rank = rank_of(phase.layout, k, 0);
    const auto& limit = cluster.devices[rank].memory_limit_bytes;
    const RankMemory& need = candidate.memory[k];
    if (limit && !options.ignore_memory_limit && need.total() > *limit) return std::nullopt;
    const auto& layers = costs.at(cluster.devices[rank].type, b, phase.tokens, phase.layout.tensor_parallel_size);
    Nanoseconds time = stage_ns(layers, profile.model, phase.partition[k], phase.recompute);
    if (k > 0) {
      const Link& link = link_between(cluster, rank_of(phase.layout, k - 1, 0), rank).point_to_point;
      time += 2 * (link.latency_ns +
                   transfer_occupancy_ns(link, layers[phase.partition[k].begin - 1].output_activation_bytes));
    }
    std::vector<int> replicas = replicas_of(phase.layout, k);
    std::sort(replicas.begin(), replicas.end());
    slowest = std::max({slowest, time, all_reduce_ns(cluster, replicas, need.gradients) / m});
  }
  return slowest;
}

}  // namespace

std::variant<Phase, Infeasible> pipedream_2bw_phase(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  LayerCosts costs(profile, options.dtype, options.sequence_parallel);
  BestOfLengths best;
  std::vector<Recompute> ways = {options.recompute};
  if (!options.recompute) ways.push_back(RecomputeMode::layers);
  for_each_length(problem, [&](int depth) {
    auto split = equal_split(profile.model, depth);
    if (auto* none = std::get_if<Infeasible>(&split)) return best.add(std::move(*none));
    for (const Recompute& way : ways) {
      CandidateMaker maker(problem, {.pipeline_parallel_size = depth}, costs);
      Infeasible why{
          fmt::format("p = {}: no micro-batch fits with two versions of the weights{}", depth, recompute_note(way))};
      for (const int m : maker.numbers_of_micro_batches()) {  // the largest micro-batch first
        if (m < depth) continue;
        try {
          Phase phase = maker.unpartitioned_phase(way, {"PipeDream-2BW"}, m);
          phase.partition = std::get<Partition>(split);
          const Candidate candidate = maker.with_memory(std::move(phase));
          const auto time = steady_ns(candidate, problem, costs);
          if (!time) {
            why.lacks_memory = true;
            continue;
          }
          PlanOptions found = options;
          found.schedule = "PipeDream-2BW";
          found.recompute = way;
          found.num_micro_batches = m;
          const double samples =
              static_cast<double>(options.global_batch_size) / m;  // of one micro-batch of each replica
          best.add(with_partition({profile, cluster, found}, candidate.phase.partition),
                   static_cast<double>(*time) / samples);
          why.reason.clear();
          break;
        } catch (const InvalidInput& error) {  // not measured at this size
          why.reason = fmt::format("p = {}: {}", depth, error.what());
        }
      }
      if (!why.reason.empty()) best.add(std::move(why));
    }
  });
  return std::move(best).result();
}

std::variant<Phase, Infeasible> pipedream_phase(const PlanningProblem& problem) {
  const auto& [profile, cluster, wanted] = problem;
  PlanOptions options = wanted;
  options.schedule = "1F1B";
  LayerCosts costs(profile, options.dtype, options.sequence_parallel);
  BestOfLengths best;
  for_each_length({profile, cluster, options}, [&](int p) {
    const int d = replicas_of_pipelines(cluster, options, p), b = std::max(1, options.global_batch_size / (d * p));
    try {
      const auto& costs_of =
          costs.at(cluster.devices.front().type, b, tokens_of(options, profile), options.tensor_parallel_size);
      std::vector<PipeDreamLayer> layers;
      for (std::size_t i = 0; i < costs_of.size(); ++i) {
        const LayerCost& cost = costs_of[i];
        const Layer& layer = profile.model.layers[i];
        const Bytes bytes = kept_bytes_per_value(options.dtype);
        layers.push_back(
            {.compute_ns = static_cast<double>(cost.forward_ns + cost.input_gradient_ns + cost.weight_gradient_ns),
             .activation_bytes = static_cast<double>(cost.output_activation_bytes),
             .parameter_bytes = static_cast<double>(
                 of_tensor_rank(held_parameter_count(profile.model, static_cast<int>(i)) * bytes,
                                layer.whole_parameter_count * bytes, options.tensor_parallel_size))});
      }
      const ParallelLayout layout{
          .pipeline_parallel_size = p, .data_parallel_size = d, .tensor_parallel_size = options.tensor_parallel_size};
      const auto between = [&](int rank, int other) {
        return rank == other ? LinkClass{} : link_between(cluster, rank, other);
      };
      const auto reduction = static_cast<double>(
          between(rank_of(layout, 0, 0), rank_of(layout, 0, d - 1)).collective.bandwidth_bytes_per_second);
      const auto messages = static_cast<double>(
          between(rank_of(layout, 0, 0), rank_of(layout, p - 1, 0)).point_to_point.bandwidth_bytes_per_second);
      using enum PipeDreamLevel::Use;
      const PipeDreamPlan plan = pipedream_plan(layers, {{.parts = d, .bytes_per_second = reduction, .use = replicas},
                                                         {.parts = p, .bytes_per_second = messages, .use = stages}});
      Partition partition;
      for (const PipeDreamStage& stage : plan.stages) partition.push_back(stage.layers);
      best.add(with_partition({profile, cluster, options}, std::move(partition)), plan.slowest_ns / b);
    } catch (const InvalidInput& error) {
      best.add(Infeasible{fmt::format("p = {}: {}", p, error.what())});
    }
  });
  return std::move(best).result();
}

}  // namespace frostpipe
