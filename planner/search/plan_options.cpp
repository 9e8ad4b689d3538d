#include "planner/search/plan_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "base/error.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "planner/search/candidate.h"

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

std::set<int> measured_tensor_sizes(const Profile& profile, bool sequence_parallel) {
  std::set<int> sizes;
  for (const Measurement& one : profile.measurements)
    if (one.key.tensor_parallel_size == 1 || one.key.sequence_parallel == sequence_parallel)
      sizes.insert(one.key.tensor_parallel_size);
  return sizes;
}

int replicas_of_pipelines(const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size) {
  if (options.data_parallel_size > 0) return options.data_parallel_size;
  return replicates(options)
             ? devices_to_use(cluster, options) / (pipeline_parallel_size * options.tensor_parallel_size)
             : 1;
}

namespace {

/// Returns the methods that leave schedule and partition open.
std::set<PlanMethod> open_methods() {
  using enum PlanMethod;
  return {automatic, static_pipeline, pipetransformer, freeze_only, pipetransformer_without_replicas};
}

/// Returns why a schedule cannot have this shape, and from which number of micro-batches it can; empty if it can.
std::string why_no_shape(const PlanOptions& options, const ScheduleShape& shape, int replicas) {
  const auto refusal = [&](int num_micro_batches) -> std::string {
    ScheduleShape other = shape;
    other.num_micro_batches = num_micro_batches;
    try {
      require_shape(options.schedule, other);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return {};
  };
  const std::string why = refusal(shape.num_micro_batches);
  if (why.empty()) return {};
  const auto more = std::views::iota(shape.num_micro_batches + 1, 2 * shape.pipeline_parallel_size + 1);
  const auto enough = std::ranges::partition_point(more, [&](int number) { return !refusal(number).empty(); });
  if (enough == more.end()) return why;
  const std::string needed = fmt::format("{}: {} micro-batches are needed", why, *enough);
  if (options.num_micro_batches > 0)
    return fmt::format("{}; ask for {} with a global batch of at least {}, or try a shorter pipeline", needed, *enough,
                       *enough * replicas);
  return fmt::format("{}, a global batch of {} makes {}{}; try one of at least {}, or a shorter pipeline", needed,
                     options.global_batch_size, shape.num_micro_batches,
                     replicas > 1 ? fmt::format(" on each of {} replicas", replicas) : "", *enough * replicas);
}

/// Throws InvalidInput unless the method leaves the partition open, as `choice` requires.
void require_open_method(const std::string& choice, const PlanOptions& options) {
  if (!open_methods().contains(options.method))
    throw InvalidInput(choice,
                       "need the method auto, static, freeze-only, pipetransformer or pipetransformer-without-replicas",
                       to_string(options.method));
}

void require_slices(const PlanOptions& options, const Profile& profile) {
  const bool has_slices = schedule_traits(options.schedule).has_slices;
  if (options.token_slices > 0 && !has_slices)
    throw InvalidInput("token slices", "need the schedule TeraPipe or Seq1F1B",
                       options.schedule.empty() ? "none" : options.schedule);
  if (!has_slices) return;
  const bool is_terapipe = options.method == PlanMethod::terapipe;
  if (!is_terapipe) require_open_method("token slices", options);
  if (!profile.model.is_causal)
    throw InvalidInput(
        "profile of " + profile.model.name,
        fmt::format("must describe a causal language model, such as GPT-2 or Llama (profile again if it does), for {}",
                    options.schedule),
        "of another");
  if (is_terapipe && !knows_slices(profile))
    throw InvalidInput("profile of " + profile.model.name,
                       "must have measured token slices, which the method terapipe cuts (profile again, without "
                       "--quick)",
                       "without them");
  if (is_terapipe && options.token_slices > 0)
    throw InvalidInput("token slices", "must be left to the method terapipe, which cuts them",
                       std::to_string(options.token_slices));
  const int tokens = std::max(options.tokens, profile.workload ? profile.workload->longest_tokens : 0);
  const int slices = token_slices_of(options, options.schedule);
  if (tokens > 0 && slices > tokens)
    throw InvalidInput("token slices", fmt::format("must be at most {}, the longest sample's tokens", tokens),
                       std::to_string(slices));
}

/// Throws InvalidInput if several stages per rank are asked for, but the schedule has none or the method does not leave
/// the partition open.
void require_open_partition_for_several_stages(const PlanOptions& options) {
  if (!asks_for_several_stages_per_rank(options)) return;
  const ScheduleTraits traits = schedule_traits(options.schedule);
  const auto [least, most] = std::pair(traits.least_virtual_stages, traits.max_virtual_stages);
  const int wanted = options.virtual_stages;
  if (!options.schedule.empty() && wanted > 0 && (wanted < least || wanted > most))
    throw InvalidInput("stages per rank", fmt::format("must be {} for the schedule {}", least, options.schedule),
                       std::to_string(wanted));
  require_open_method("several stages per rank", options);
  if (options.partitioner != Partitioner::exact)
    throw InvalidInput("several stages per rank", "need the exact partitioner", to_string(options.partitioner));
}

}  // namespace

int longest_pipeline(const Cluster& cluster, const PlanOptions& options) {
  const int replicas = std::max(1, options.data_parallel_size);
  return std::max(1, devices_to_use(cluster, options) / (options.tensor_parallel_size * replicas));
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
  if (splits_backward(options.schedule)) require_split_backward(options.schedule, profile);
  const int layers = static_cast<int>(profile.model.layers.size());
  constexpr int kMaxLayers = 10'000;
  if (layers > kMaxLayers)
    throw InvalidInput("profile of " + profile.model.name,
                       fmt::format("must have at most {} layers to plan with; join some", kMaxLayers),
                       std::to_string(layers));
  for (const LayerPin& pin : options.pins)
    if (pin.layer < 0 || pin.layer >= layers || pin.stage < 0)
      throw InvalidInput("pin", fmt::format("must name one of {} layers and a stage", layers),
                         fmt::format("{}={}", pin.layer, pin.stage));
  if (!options.pins.empty() && options.partitioner != Partitioner::exact)
    throw InvalidInput("pin", "needs the exact partitioner", to_string(options.partitioner));
  using enum PlanMethod;
  const std::set<PlanMethod> cut_by_rule = {equal_split, pipedream, pipedream_2bw,
                                            ptd_p,       terapipe,  pipetransformer_published};
  if (!options.pins.empty() && cut_by_rule.contains(options.method))
    throw InvalidInput("pin", "needs a method that leaves partitions open", to_string(options.method));
  require_open_partition_for_several_stages(options);
  require_slices(options, profile);
  const bool sizes_fixed = options.pipeline_parallel_size > 0 || options.data_parallel_size > 0 ||
                           !options.any_tensor_parallel_size || options.num_micro_batches > 0;
  if (sizes_fixed && options.method == ptd_p)
    throw InvalidInput("method", "must leave stages, replicas, tensor ranks and micro-batches to Megatron's rules",
                       to_string(options.method));
}

bool may_use_any_schedule(const PlanOptions& options) {
  return open_methods().contains(options.method) && options.partitioner == Partitioner::exact;
}

int token_slices_of(const PlanOptions& options, const std::string& schedule) {
  constexpr int kUsual = 4;
  if (!schedule_traits(schedule).has_slices) return 1;
  return options.token_slices > 0 ? options.token_slices : kUsual;
}

bool knows_slices(const Profile& profile) {
  return std::any_of(profile.measurements.begin(), profile.measurements.end(),
                     [](const Measurement& one) { return one.key.context_tokens > 0; });
}

bool cuts_slices(const PlanningProblem& problem) {
  const PlanOptions& options = problem.options;
  const bool asks_for_slices = options.method == PlanMethod::terapipe || schedule_traits(options.schedule).has_slices;
  return asks_for_slices && options.token_slices == 0 && knows_slices(problem.profile);
}

bool asks_for_several_stages_per_rank(const PlanOptions& options) {
  return options.virtual_stages > 1 || schedule_traits(options.schedule).max_virtual_stages > 1;
}

namespace {

/// Returns the numbers of stages per rank, at most `most`, to try for a schedule: the number asked for, else all that
/// it allows. With one stage per rank, a schedule that may have more is the same as 1F1B, GPipe or ZB-H1 and is left
/// out.
std::vector<int> stages_per_rank_of(const ScheduleTraits& traits, const PlanOptions& options, int most) {
  std::vector<int> numbers;
  for (int v = traits.least_virtual_stages; v <= std::min(most, traits.max_virtual_stages); ++v) {
    const bool is_asked_for = options.virtual_stages == v;
    const bool is_another_schedule = v == 1 && traits.max_virtual_stages > 1;
    if (options.virtual_stages > 0 && !is_asked_for) continue;
    if (is_another_schedule && !(is_asked_for && !options.schedule.empty())) continue;
    if (v > 1 && !options.partition.empty()) continue;  // a given partition has one stage per rank
    // Pins assume one stage per rank unless several are asked for.
    if (v > 1 && !options.pins.empty() && !is_asked_for && options.schedule.empty()) continue;
    numbers.push_back(v);
  }
  return numbers;
}

/// Returns whether token slices can be priced and made if the options do not ask for them.
bool may_be_sliced(const PlanningProblem& problem) {
  const Profile& profile = problem.profile;
  const int tokens =
      std::max(tokens_of(problem.options, profile), profile.workload ? profile.workload->longest_tokens : 0);
  return profile.model.is_causal && knows_slices(profile) && token_slices_of(problem.options, "TeraPipe") <= tokens;
}

}  // namespace

std::vector<PlannedSchedule> schedules_for(const PlanningProblem& problem, int pipeline_parallel_size) {
  const PlanOptions& options = problem.options;
  const bool any = options.schedule.empty() && may_use_any_schedule(options);
  if (options.schedule.empty() && options.virtual_stages == 0 && pipeline_parallel_size == 1) return {{"1F1B"}};
  std::vector<std::string> names{options.schedule};
  if (options.schedule.empty()) names = {"1F1B", "GPipe"};  // if both take equally long, 1F1B needs less memory
  if (any)
    for (const std::string& name : schedule_names())
      if (name != "1F1B" && name != "GPipe" && schedule_traits(name).weight_delay == 0) names.push_back(name);
  constexpr int kMax = 4;
  const int layers_per_rank = static_cast<int>(problem.profile.model.layers.size()) / pipeline_parallel_size;
  const int most = options.virtual_stages > 0 ? options.virtual_stages : std::clamp(layers_per_rank, 2, kMax);
  std::vector<PlannedSchedule> choices;
  for (const std::string& name : names) {
    const ScheduleTraits traits = schedule_traits(name);
    if (options.schedule.empty() && traits.has_slices && !may_be_sliced(problem)) continue;
    if (options.schedule.empty() && traits.splits_backward && !knows_split_backward(problem.profile)) continue;
    for (const int virtual_stages : stages_per_rank_of(traits, options, most))
      choices.push_back({name, virtual_stages});
  }
  return choices;
}

std::string why_no_pipeline(const PlanningProblem& problem, int pipeline_parallel_size) {
  const auto& [profile, cluster, options] = problem;
  const int p = pipeline_parallel_size;
  const int devices = devices_to_use(cluster, options), num_layers = static_cast<int>(profile.model.layers.size());
  if (p < 1) throw InvalidInput("pipeline length", "must be >= 1", std::to_string(p));
  const int replicas = replicas_of_pipelines(cluster, options, p),
            micro_batches = std::max(1, options.num_micro_batches);
  const int ranks = p * options.tensor_parallel_size * std::max(1, replicas);
  if (ranks > devices)
    return fmt::format(
        "this takes {} ranks{}, {} {}", ranks, replicas > 1 ? fmt::format(" for {} replicas", replicas) : "",
        devices < static_cast<int>(cluster.devices.size()) ? "the plan may use" : "the cluster has", devices);
  if (replicas % profile.model.expert_parallel_size != 0)
    return fmt::format("{} replica{} cannot share out experts by {} (profile --expert-parallel)", replicas,
                       replicas == 1 ? "" : "s", profile.model.expert_parallel_size);
  if (options.global_batch_size < replicas * micro_batches)
    return fmt::format(
        "{} samples are too few for {} micro-batch{} on each of {} replicas (that takes a global batch of {}, or fewer "
        "replicas: fewer ranks or a longer pipeline)",
        options.global_batch_size, micro_batches, micro_batches == 1 ? "" : "es", replicas, replicas * micro_batches);
  if (p > num_layers) return fmt::format("the model has {} layers", num_layers);
  const int virtual_stages = schedules_for(problem, p).front().virtual_stages;
  if (virtual_stages > num_layers / p)
    return fmt::format(
        "the model has {} layers, too few for {} stages per rank; ask for at most {}, or try a shorter "
        "pipeline",
        num_layers, virtual_stages, num_layers / p);
  if (!options.partition.empty() && static_cast<int>(options.partition.size()) != p)
    return fmt::format("the partition has {} stages", options.partition.size());
  // Looped schedules allow some number of micro-batches with every length. The others allow all from some number on, so
  // it suffices to test the largest.
  if (!options.schedule.empty() && schedule_traits(options.schedule).max_virtual_stages <= 2) {
    const int most = options.num_micro_batches > 0 ? options.num_micro_batches : options.global_batch_size / replicas;
    const std::string why = why_no_shape(
        options, {.pipeline_parallel_size = p, .num_micro_batches = most, .virtual_stages = virtual_stages}, replicas);
    if (!why.empty()) return why;
  }
  if (!can_keep_pins(options.pins, num_layers, p * virtual_stages))
    return "no partition keeps the pinned layers on their stages";
  return {};
}

bool knows_split_backward(const Profile& profile) {
  return std::any_of(profile.measurements.begin(), profile.measurements.end(),
                     [](const Measurement& one) { return one.cost.split_backward.has_value(); });
}

void require_split_backward(const std::string& schedule, const Profile& profile) {
  if (knows_split_backward(profile)) return;
  throw InvalidInput("profile of " + profile.model.name,
                     fmt::format("must have measured I and W, which {} has in place of B (profile again)", schedule),
                     "without them");
}

void require_split_backward(const std::vector<Phase>& phases, const Profile& profile) {
  for (const Phase& phase : phases)
    if (splits_backward(phase)) require_split_backward(phase.schedule, profile);
}

bool replicates(const PlanOptions& options) { return options.method != PlanMethod::pipetransformer_without_replicas; }

}  // namespace frostpipe
