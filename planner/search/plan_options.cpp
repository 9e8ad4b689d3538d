#include "planner/search/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "profiles/error.h"

namespace frostpipe {

void Infeasible::add(const Infeasible& other) {
  reason += (reason.empty() ? "" : "; ") + other.reason;
  lacks_memory = lacks_memory || other.lacks_memory;
}

StepSettings step_settings(const PlanOptions& options) {
  return {.global_batch_size = options.global_batch_size, .optimizer = options.optimizer, .dtype = options.dtype};
}

int devices_to_use(const Cluster& cluster, const PlanOptions& options) {
  const int all = static_cast<int>(cluster.devices.size());
  return options.max_devices > 0 ? std::min(all, options.max_devices) : all;
}

int replicas_of_pipelines(const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size) {
  if (options.data_parallel_size > 0) return options.data_parallel_size;
  return replicates(options)
             ? devices_to_use(cluster, options) / (pipeline_parallel_size * options.tensor_parallel_size)
             : 1;
}

void require_meaningful(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  if (options.global_batch_size < 1) {
    throw InvalidInput("global batch size", "must be >= 1", std::to_string(options.global_batch_size));
  }
  if (options.num_steps < 1) throw InvalidInput("number of steps", "must be >= 1", std::to_string(options.num_steps));
  if (cluster.devices.empty()) throw InvalidInput("cluster " + cluster.name, "must have a device", "none");
  const int devices = devices_to_use(cluster, options);
  if (options.tensor_parallel_size < 1 || devices % options.tensor_parallel_size != 0)
    throw InvalidInput("tensor-parallel size", fmt::format("must divide the {} ranks", devices),
                       std::to_string(options.tensor_parallel_size));
  const auto has_backward = [](const Measurement& one) {
    return one.cost.input_gradient_ns + one.cost.weight_gradient_ns > 0;
  };
  if (std::none_of(profile.measurements.begin(), profile.measurements.end(), has_backward))
    throw InvalidInput("profile of " + profile.model.name, "must have backward times to plan training with",
                       profile.measurements.empty() ? "no measurements" : "none above 0");
  require_split_backward(options.schedule, profile);
  const int layers = static_cast<int>(profile.model.layers.size());
  constexpr int kMostLayers = 10'000;
  if (layers > kMostLayers)
    throw InvalidInput("profile of " + profile.model.name,
                       fmt::format("must have at most {} layers to plan with; join some", kMostLayers),
                       std::to_string(layers));
  for (const LayerPin& pin : options.pins)
    if (pin.layer < 0 || pin.layer >= layers || pin.stage < 0)
      throw InvalidInput("pin", fmt::format("must name one of {} layers and a stage", layers),
                         fmt::format("{}={}", pin.layer, pin.stage));
  if (!options.pins.empty() && options.partitioner != Partitioner::exact)
    throw InvalidInput("pin", "needs the exact partitioner", to_string(options.partitioner));
  using enum PlanMethod;
  const std::set<PlanMethod> cut_by_rule = {equal_split, pipedream, pipedream_2bw, ptd_p, pipetransformer_published};
  if (!options.pins.empty() && cut_by_rule.contains(options.method))
    throw InvalidInput("pin", "needs a method that leaves partitions open", to_string(options.method));
  const bool sizes_fixed = options.pipeline_parallel_size > 0 || options.data_parallel_size > 0 ||
                           !options.any_tensor_parallel_size || options.num_micro_batches > 0;
  if (sizes_fixed && options.method == ptd_p)
    throw InvalidInput("method", "must leave stages, replicas, tensor ranks and micro-batches to Megatron's rules",
                       to_string(options.method));
}

std::string why_no_pipeline(const PlanningProblem& problem, int pipeline_parallel_size) {
  const auto& [profile, cluster, options] = problem;
  const int p = pipeline_parallel_size;
  const int devices = devices_to_use(cluster, options), num_layers = static_cast<int>(profile.model.layers.size());
  if (p < 1) throw InvalidInput("pipeline length", "must be >= 1", std::to_string(p));
  const int replicas = replicas_of_pipelines(cluster, options, p),
            micro_batches = std::max(1, options.num_micro_batches);
  if (replicas < 1 || p * options.tensor_parallel_size * replicas > devices)
    return fmt::format("{} {} ranks",
                       devices < static_cast<int>(cluster.devices.size()) ? "the plan may use" : "the cluster has",
                       devices);
  if (options.global_batch_size < replicas * micro_batches)
    return fmt::format(
        "{} samples are too few for {} micro-batch{} on each of {} replicas (that takes a global batch of {}, or fewer "
        "replicas: fewer ranks or a longer pipeline)",
        options.global_batch_size, micro_batches, micro_batches == 1 ? "" : "es", replicas, replicas * micro_batches);
  if (p > num_layers) return fmt::format("the model has {} layers", num_layers);
  if (!options.partition.empty() && static_cast<int>(options.partition.size()) != p)
    return fmt::format("the partition has {} stages", options.partition.size());
  const int most_micro_batches =
      options.num_micro_batches > 0 ? options.num_micro_batches : options.global_batch_size / replicas;
  if (const std::string reason = why_no_schedule(options.schedule, p, most_micro_batches); !reason.empty())
    return reason;
  if (!can_keep_pins(options.pins, num_layers, p)) return "no partition keeps the pinned layers on their stages";
  return {};
}

void require_split_backward(const std::string& schedule, const Profile& profile) {
  const auto is_split = [](const Measurement& one) { return one.cost.split_backward.has_value(); };
  if (splits_backward(schedule) && std::none_of(profile.measurements.begin(), profile.measurements.end(), is_split))
    throw InvalidInput("profile of " + profile.model.name,
                       fmt::format("must have measured I and W, which {} has in place of B (profile again)", schedule),
                       "without them");
}

std::string why_no_schedule(const std::string& schedule, int pipeline_parallel_size, int num_micro_batches) {
  if (schedule.empty()) return {};
  try {  // no schedule asks for more than 2 p micro-batches, and one of many is long to build
    build_schedule(schedule, {.pipeline_parallel_size = pipeline_parallel_size,
                              .num_micro_batches = std::min(num_micro_batches, 2 * pipeline_parallel_size)});
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return {};
}

bool replicates(const PlanOptions& options) { return options.method != PlanMethod::pipetransformer_without_replicas; }

}  // namespace frostpipe
