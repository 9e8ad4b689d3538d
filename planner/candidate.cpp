#include "planner/candidate.h"

#include <algorithm>
#include <limits>

#include "plan/batch.h"
#include "planner/partition.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr int kMaxMicroBatches = 32;
constexpr Bytes kManyPositions = 1 << 20;
constexpr int kFewCuts = 7;  // up to 8 stages neighbouring cuts are shifted together too

Bytes missing_bytes(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster) {
  Bytes missing = 0;
  for (int position = 0; position < phase.layout.pipeline_parallel_size; ++position) {
    for (const int rank : replicas_of(phase.layout, position)) {
      const auto& limit = cluster.devices.at(rank).memory_limit_bytes;
      if (limit) missing += std::max<Bytes>(0, memory[position].total() - *limit);
    }
  }
  return missing;
}

}  // namespace

CandidateMaker::CandidateMaker(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                               int pipeline_parallel_size, int first_trainable_layer, const CacheUse& cache)
    : profile_(profile), cluster_(cluster), options_(options) {
  frame_.first_trainable_layer = first_trainable_layer;
  frame_.cache = cache;
  frame_.recompute = options.recompute;
  frame_.layout.pipeline_parallel_size = pipeline_parallel_size;
  frame_.layout.tensor_parallel_size = options.tensor_parallel_size;
  frame_.layout.data_parallel_size =
      replicates(options) ? static_cast<int>(cluster.devices.size()) / (pipeline_parallel_size * options.tensor_parallel_size) : 1;
  frame_.tokens = tokens_of(options, profile);
  if (profile.workload) frame_.longest_tokens = profile.workload->longest_tokens;
  const int num_layers = static_cast<int>(profile.model.layers.size());
  update_ns_.assign(num_layers, 0);
  for (int layer = first_trainable_layer; layer < num_layers; ++layer) {
    update_ns_[layer] = update_cost_of(profile, layer, cluster.devices.front().type, options.dtype, options.optimizer) / options.tensor_parallel_size;
  }
}

int CandidateMaker::max_micro_batches() const {
  return std::clamp(options_.global_batch_size / frame_.layout.data_parallel_size, 1, kMaxMicroBatches);
}

std::variant<Candidate, Infeasible> CandidateMaker::make(std::string_view schedule, int num_micro_batches) {
  Phase phase = frame_;
  phase.schedule = schedule;
  phase.num_micro_batches = num_micro_batches;
  auto partition = first_partition(num_micro_batches);
  if (auto* none = std::get_if<Infeasible>(&partition)) return *none;
  phase.partition = std::get<Partition>(std::move(partition));
  Candidate candidate = with_memory(std::move(phase));
  return options_.partitioner == "exact" ? shifted_until_it_fits(std::move(candidate)) : candidate;
}

std::variant<Partition, Infeasible> CandidateMaker::first_partition(int num_micro_batches) {
  const int num_stages = frame_.layout.pipeline_parallel_size;
  if (options_.partitioner == "exact") return partition_exact(cost_per_layer(num_micro_batches), num_stages);

  // As published: only what trains is shared out, by its parameters; the frozen prefix stays with the first stage.
  const int first = frame_.first_trainable_layer;
  std::vector<double> active;
  for (int layer = first; layer < static_cast<int>(profile_.model.layers.size()); ++layer) {
    active.push_back(static_cast<double>(profile_.model.layers[layer].parameter_count) / 1e6);
  }
  Partition partition = partition_pipetransformer_greedy(active, num_stages);
  for (int stage = 0; stage < num_stages; ++stage) {
    if (partition[stage].begin == partition[stage].end) {
      return Infeasible{"the pipetransformer-greedy partitioner leaves stage " + std::to_string(stage) + " of " +
                        std::to_string(num_stages) + " empty: " + to_string(partition) + " of " +
                        std::to_string(active.size()) + " active layers"};
    }
    partition[stage].begin += first;
    partition[stage].end += first;
  }
  partition.front().begin = 0;
  return partition;
}

std::vector<Nanoseconds> CandidateMaker::cost_per_layer(int num_micro_batches) {
  // Replica 0 has the larger micro-batches.
  const int data_parallel_size = frame_.layout.data_parallel_size;
  const auto ranges = split_evenly(options_.global_batch_size, data_parallel_size * num_micro_batches);
  std::map<int, int> how_many_of_size;
  for (int i = 0; i < num_micro_batches; ++i) ++how_many_of_size[ranges[i].end - ranges[i].begin];

  std::vector<Nanoseconds> cost = update_ns_;
  for (const auto& [size, count] : how_many_of_size) {
    const std::vector<LayerCost>& layers = layers_at(size);
    for (int layer = 0; layer < static_cast<int>(cost.size()); ++layer) {
      const LayerCost& one = layers[layer];
      if (layer < frame_.first_trainable_layer) {
        cost[layer] += static_cast<Nanoseconds>(count * computed_fraction(frame_.cache, layer, frame_.first_trainable_layer) * static_cast<double>(one.frozen_forward_ns));
      } else {
        cost[layer] += count * (one.forward_ns + one.weight_gradient_ns);
        if (layer > frame_.first_trainable_layer) cost[layer] += count * one.input_gradient_ns;
        if (is_recomputed(frame_.recompute, profile_.model.layers[layer].kind)) cost[layer] += count * one.forward_ns;
      }
    }
  }
  return cost;
}

const std::vector<LayerCost>& CandidateMaker::layers_at(int micro_batch_size) {
  const auto known = layers_at_.find(micro_batch_size);
  if (known != layers_at_.end()) return known->second;
  std::vector<LayerCost> layers;
  for (int layer = 0; layer < static_cast<int>(profile_.model.layers.size()); ++layer) {
    layers.push_back(cost_of(profile_, {.layer = layer,
                                        .device_type = cluster_.devices.front().type,
                                        .dtype = options_.dtype,
                                        .micro_batch_size = micro_batch_size,
                                        .tokens = frame_.tokens,
                                        .tensor_parallel_size = options_.tensor_parallel_size}));
  }
  return layers_at_.emplace(micro_batch_size, std::move(layers)).first->second;
}

Candidate CandidateMaker::with_memory(Phase phase) const {
  auto memory = memory_of(phase, options_.global_batch_size, options_.optimizer, options_.dtype, profile_, cluster_);
  const Bytes missing = options_.ignore_memory_limit ? 0 : missing_bytes(phase, memory, cluster_);
  return {.phase = std::move(phase), .memory = std::move(memory), .missing_bytes = missing};
}

bool CandidateMaker::may_fit_somewhere(const Candidate& candidate) const {
  Bytes states = 0, limits = 0;
  for (int position = 0; position < static_cast<int>(candidate.memory.size()); ++position) {
    const RankMemory& memory = candidate.memory[position];
    states += memory.weights + memory.gradients + memory.optimizer_state;
    Bytes limit = std::numeric_limits<Bytes>::max() / kManyPositions;
    for (const int rank : replicas_of(candidate.phase.layout, position)) limit = std::min(limit, cluster_.devices.at(rank).memory_limit_bytes.value_or(limit));
    limits += limit;
  }
  return states <= limits;
}

Candidate CandidateMaker::shifted_until_it_fits(Candidate candidate) const {
  bool better = may_fit_somewhere(candidate);
  while (candidate.missing_bytes > 0 && better) {
    better = false;
    for (Partition& partition : neighbours(candidate.phase.partition)) {
      Phase phase = candidate.phase;
      phase.partition = std::move(partition);
      Candidate shifted = with_memory(std::move(phase));
      if (shifted.missing_bytes >= candidate.missing_bytes) continue;
      candidate = std::move(shifted);
      better = true;
    }
  }
  return candidate;
}

std::vector<Partition> neighbours(const Partition& partition) {
  std::vector<Partition> all;
  const int cuts = static_cast<int>(partition.size()) - 1;
  const int together = cuts <= kFewCuts ? cuts : 1;
  for (int first = 0; first < cuts; ++first) {
    for (int last = first; last < std::min(cuts, first + together); ++last) {
      for (const int shift : {-1, 1}) {
        Partition shifted = partition;
        for (int cut = first; cut <= last; ++cut) shifted[cut].end = shifted[cut + 1].begin = shifted[cut].end + shift;
        if (std::all_of(shifted.begin(), shifted.end(), [](const LayerRange& stage) { return stage.begin < stage.end; })) all.push_back(std::move(shifted));
      }
    }
  }
  return all;
}

std::vector<Bytes> peak_per_rank(const Phase& phase, const std::vector<RankMemory>& memory, int world_size) {
  std::vector<Bytes> peak(world_size, 0);
  for (int rank = 0; rank < world_size; ++rank) {
    Place place;
    if (find_place(phase.layout, rank, place)) peak[rank] = memory[place.position].total();
  }
  return peak;
}

int tokens_of(const PlanOptions& options, const Profile& profile) {
  const int tokens = options.tokens != 0 || !profile.workload ? options.tokens : profile.workload->tokens;
  if (tokens < 1) {
    throw InvalidInput("tokens", "must be >= 1 where the profile names no workload", std::to_string(tokens));
  }
  return tokens;
}

}  // namespace frostpipe
