#include "planner/search/phase_work.h"

#include <algorithm>
#include <numeric>

#include "plan/batch.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "simulator/communication_costs.h"

namespace frostpipe {
namespace {

/// Time of one micro-batch on one layer.
struct LayerTime {
  Nanoseconds forward = 0, backward = 0, weights = 0;  // backward is I if it is split
  Nanoseconds all() const { return forward + backward + weights; }
};

LayerTime time_of(const Phase& unpartitioned, bool splits_backward, const Profile& profile, const MeasurementKey& key,
                  const LayerCost& cost) {
  const int layer = key.layer;
  if (layer < unpartitioned.first_trainable_layer) {
    const double computed = computed_fraction(unpartitioned.cache, layer, unpartitioned.first_trainable_layer);
    if (computed == 1) return {.forward = cost.frozen_forward_ns};
    return {.forward = expected_frozen_forward_ns(profile, key, cost, computed * key.micro_batch_size)};
  }
  const bool has_input_gradient = layer > unpartitioned.first_trainable_layer;
  LayerTime time{.forward = cost.forward_ns};
  const Nanoseconds whole = cost.weight_gradient_ns + (has_input_gradient ? cost.input_gradient_ns : 0);
  if (splits_backward) {
    const SplitBackward split = split_backward_of(cost, has_input_gradient);  // DualPipeV has unsplit backwards as well
    time.backward = std::min(whole, split.input_ns);
    time.weights = std::min(whole, split.input_ns + split.weight_ns) - time.backward;
  } else {
    time.backward = whole;
  }
  if (is_recomputed(unpartitioned.recompute, profile.model.layers[layer].kind)) time.backward += cost.forward_ns;
  return time;
}

/// The micro-batches of one size on one device type.
struct SizeWork {
  int size = 0, count = 0;  // samples per micro-batch; number of micro-batches
  bool is_smaller = false;
  bool splits_backward = false;
  const std::string& device_type;
};

/// Adds the time of slice number `slice` of the micro-batches, which may be all of them, to `here` and `work`. Times
/// through the pipeline use the shortest slice.
void add_slice(PhaseWork& work, WorkByLayer& here, const SizeWork& of, int slice, const Phase& phase,
               const PlanningProblem& problem, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const auto& layers = costs.of_phase(phase, of.device_type, of.size, slice);
  MeasurementKey key{.device_type = of.device_type,
                     .dtype = options.dtype,
                     .micro_batch_size = of.size,
                     .tokens = phase.tokens,
                     .tensor_parallel_size = phase.layout.tensor_parallel_size,
                     .sequence_parallel = phase.layout.sequence_parallel};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    key.layer = static_cast<int>(layer);
    const LayerTime time = time_of(phase, of.splits_backward, profile, key, layers[layer]);
    here.all[layer] += of.count * time.all();
    here.forwards[layer] += of.count * time.forward;
    here.weights[layer] += of.count * time.weights;
    if (!of.is_smaller) continue;
    const bool trains = static_cast<int>(layer) >= phase.first_trainable_layer;
    work.forward[layer] = trains ? std::min(work.forward[layer], time.forward) : 0;
    work.backward[layer] = trains ? std::min(work.backward[layer], time.backward) : 0;
    work.least_output = std::min(work.least_output, layers[layer].output_activation_bytes);
  }
}

/// Returns whether the replicas of some pipeline rank have devices of different types.
bool have_unequal_replicas(const ParallelLayout& layout, const Cluster& cluster) {
  if (std::ranges::all_of(cluster.devices,
                          [&](const Device& device) { return device.type == cluster.devices[0].type; }))
    return false;
  for (int k = 0; k < layout.pipeline_parallel_size; ++k)
    for (int replica = 1; replica < layout.data_parallel_size; ++replica)
      if (cluster.devices.at(rank_of(layout, k, replica)).type != cluster.devices.at(rank_of(layout, k, 0)).type)
        return true;
  return false;
}

/// Returns how many micro-batches of each size each of the first `replicas` replicas has.
std::vector<std::map<int, int>> counts_of_sizes(const Phase& phase, int replicas, int global_batch_size) {
  const int m = phase.num_micro_batches;
  const auto ranges = split_evenly(global_batch_size, phase.layout.data_parallel_size * m);
  std::vector<std::map<int, int>> counts(replicas);
  for (int replica = 0; replica < replicas; ++replica)
    for (int i = 0; i < m; ++i) {
      const SampleRange& samples = ranges[replica * m + i];
      if (samples.end > samples.begin) ++counts[replica][samples.end - samples.begin];
    }
  return counts;
}

}  // namespace

PhaseWork work_of(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs) {
  const auto& [profile, cluster, options] = problem;
  const ParallelLayout& layout = unpartitioned.layout;
  // Of replicas on equal devices, the first one works longest: it has the larger micro-batches.
  const int replicas = have_unequal_replicas(layout, cluster) ? layout.data_parallel_size : 1;
  const auto counts = counts_of_sizes(unpartitioned, replicas, options.global_batch_size);
  const bool splits = splits_backward(unpartitioned);

  constexpr Nanoseconds kLargest = std::numeric_limits<Nanoseconds>::max();
  const std::size_t n = profile.model.layers.size();
  PhaseWork work{.of_kind = {},
                 .of_rank = {},
                 .least = std::vector<Nanoseconds>(n, kLargest),
                 .forward = std::vector<Nanoseconds>(n, kLargest),
                 .backward = std::vector<Nanoseconds>(n, kLargest)};
  std::map<const WorkByLayer*, Nanoseconds> of_all_layers;
  for (int k = 0; k < layout.pipeline_parallel_size; ++k) {
    const WorkOfKinds::value_type* longest = nullptr;
    for (int replica = 0; replica < replicas; ++replica) {
      const std::string& type = cluster.devices.at(rank_of(layout, k, replica)).type;
      const auto [entry, is_new] = work.of_kind.try_emplace({type, counts[replica]});
      WorkByLayer& here = entry->second;
      if (is_new) {
        for (auto* const sums : {&here.all, &here.forwards, &here.weights}) sums->assign(n, 0);
        for (const auto& [size, count] : counts[replica])
          for (int slice = 0; slice < num_slices(unpartitioned); ++slice)
            add_slice(work, here, {size, count, size == counts[replica].begin()->first, splits, type}, slice,
                      unpartitioned, problem, costs);
        of_all_layers[&here] = std::accumulate(here.all.begin(), here.all.end(), Nanoseconds{0});
      }
      if (longest == nullptr || of_all_layers.at(&here) > of_all_layers.at(&longest->second)) longest = &*entry;
    }
    if (std::ranges::find(work.of_rank, longest) == work.of_rank.end())
      for (std::size_t layer = 0; layer < n; ++layer)
        work.least[layer] = std::min(work.least[layer], longest->second.all[layer]);
    work.of_rank.push_back(longest);
  }
  return work;
}

}  // namespace frostpipe
