#include "cli/training/rehearsal.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "cli/shared/common_options.h"
#include "cli/shared/usage_error.h"
#include "plan/memory.h"
#include "planner/search/plan_options.h"

namespace frostpipe {
namespace {

constexpr Bytes kMaxBytes = Bytes{256} << 20;  // copying more would take longer than the emulated computation

/// Returns the most that all ranks together may hold: the largest phase of the plan, or a whole model on each rank, as
/// in data parallelism.
Bytes largest_total(const Profile& profile, const TrainingPlan& plan) {
  Bytes largest = 0;
  for (const Phase& phase : plan.phases) {
    const std::vector<Bytes>& peaks = phase.predicted.peak_memory_bytes;
    largest = std::max(largest, std::accumulate(peaks.begin(), peaks.end(), Bytes{0}));
  }
  Bytes parameters = 0;
  for (const Layer& layer : profile.model.layers) parameters += layer.parameter_count;
  const Bytes state = parameters * kept_bytes_per_value(plan.dtype) * (2 + optimizer_moments(plan.optimizer));
  return std::max(largest, plan.world_size * state);
}

}  // namespace

void add_rehearsal_options(CLI::App& command, RehearsalOptions& options, TrainOptions& train) {
  command
      .add_option("--device", train.device,
                  "Device to compute on: cpu or cuda. emulated is a rehearsal with as many ranks as you like, in which "
                  "everything is real but the arithmetic: ranks sleep for the profile's times, and read no --data")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}).description(""))
      ->type_name("DEVICE")
      ->capture_default_str();
  command
      .add_option(
          "--emulated-shrink", options.shrink,
          "Divisor of emulated tensors and bandwidths; reports show undivided sizes. Default: the least with which "
          "all ranks together stay under 256 MiB")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command.add_flag("--emulated-links", options.links,
                   "Let emulated messages take the times of the cluster's links. Default: they take none");
  command
      .add_option("--nodes", train.num_nodes,
                  "Number of virtual nodes of equal size, each with its own cache and part of the data. Default: one "
                  "per host")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
}

void require_consistent(const RehearsalOptions& options, const TrainOptions& train, bool has_data) {
  using Rule = FreezePolicy::Rule;
  const bool is_rehearsal = train.device == "emulated";
  if (!is_rehearsal && !has_data) throw UsageError("--data: is required (but with --device emulated)");
  if (is_rehearsal && has_data)
    throw UsageError(
        "--data: has no meaning with --device emulated, which takes the number and length of the profile's samples");
  if (!is_rehearsal && (options.shrink > 0 || options.links))
    throw UsageError("--emulated-shrink, --emulated-links: need --device emulated");
  if (train.cuda_graphs && train.device != "cuda") throw UsageError("--cuda-graphs: needs --device cuda");
  if (is_rehearsal && (train.freeze.rule == Rule::paper || train.freeze.rule == Rule::adaptive)) {
    throw UsageError(
        "--freeze: must be plan, cap or fixed:... with --device emulated: there are no gradients to look at");
  }
}

void form_nodes(Cluster& cluster, int num_nodes) {
  if (num_nodes == 0) return;
  const int num_ranks = static_cast<int>(cluster.devices.size());
  if (num_ranks % num_nodes != 0)
    throw UsageError(
        fmt::format("--nodes: must divide the {} ranks into nodes of equal size, is {}", num_ranks, num_nodes));
  const std::vector<Device> measured = cluster.devices;
  for (int rank = 0; rank < num_ranks; ++rank) cluster.devices[rank].node = rank * num_nodes / num_ranks;
  if (cluster.devices != measured) cluster.node_pairs.clear();  // these links were between other nodes
}

Emulation emulation_of(const RehearsalOptions& options, Profile profile, const TrainingPlan& plan) {
  if (!profile.workload) {
    throw InvalidInput(
        "profile: workload",
        "must be there for an emulated run, which takes the number and length of samples from it (profile with --data)",
        "missing");
  }
  for (const Layer& layer : profile.model.layers)
    if (layer.kind == LayerKind::layer)
      throw InvalidInput(
          "profile: model",
          "must be a Transformer for an emulated run; what was imported can be simulated (frostpipe simulate)",
          layer.name);
  require_split_backward(plan.phases, profile);
  int shrink = options.shrink;
  if (shrink > profile.model.hidden_size) {
    throw UsageError(fmt::format("--emulated-shrink: must be at most {}, the model's hidden size, is {}",
                                 profile.model.hidden_size, shrink));
  }
  if (shrink == 0) {
    shrink = 1;
    const Bytes total = largest_total(profile, plan);
    while (total / shrink > kMaxBytes && 2 * shrink <= profile.model.hidden_size) shrink *= 2;
  }
  return {.profile = std::move(profile), .shrink = shrink, .links = options.links};
}

}  // namespace frostpipe
