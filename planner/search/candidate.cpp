#include "planner/search/candidate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "plan/memory_in_flight.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "planner/search/chain_partition.h"
#include "planner/search/partition.h"

namespace frostpipe {
namespace {

Bytes missing_bytes(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster) {
  Bytes missing = 0;
  for (int pipeline_rank = 0; pipeline_rank < phase.layout.pipeline_parallel_size; ++pipeline_rank) {
    for (const int rank : all_ranks_of(phase.layout, pipeline_rank)) {
      const auto& limit = cluster.devices.at(rank).memory_limit_bytes;
      if (limit) missing += std::max<Bytes>(0, memory[pipeline_rank].total() - *limit);
    }
  }
  return missing;
}

}  // namespace

CandidateMaker::CandidateMaker(const PlanningProblem& problem, const PipelineShape& shape, LayerCosts& costs)
    : problem_(problem), costs_(costs), num_nodes_(num_nodes(problem.cluster)) {
  const auto& [profile, cluster, options] = problem;
  unpartitioned_.first_trainable_layer = shape.first_trainable_layer;
  unpartitioned_.cache = shape.cache;
  unpartitioned_.layout.pipeline_parallel_size = shape.pipeline_parallel_size;
  unpartitioned_.layout.tensor_parallel_size = options.tensor_parallel_size;
  unpartitioned_.layout.sequence_parallel = options.sequence_parallel && options.tensor_parallel_size > 1;
  unpartitioned_.layout.data_parallel_size = replicas_of_pipelines(cluster, options, shape.pipeline_parallel_size);
  unpartitioned_.layout.placement = options.placement;
  unpartitioned_.tokens = tokens_of(options, profile);
  if (profile.workload) unpartitioned_.longest_tokens = profile.workload->longest_tokens;
}

std::vector<int> CandidateMaker::numbers_of_micro_batches() const {
  if (problem_.options.num_micro_batches > 0) return {problem_.options.num_micro_batches};
  constexpr int kEvery = 32;
  const int samples = std::max(1, problem_.options.global_batch_size / unpartitioned_.layout.data_parallel_size);
  std::set<int> numbers;
  for (int m = 1; m <= std::min(samples, kEvery); ++m) numbers.insert(m);
  for (int size = 1; size <= samples / kEvery; ++size) numbers.insert((samples + size - 1) / size);
  if (may_use_any_schedule(problem_.options)) {  // not every number suits all of them; a multiple of p does
    const int p = unpartitioned_.layout.pipeline_parallel_size;
    for (const int m : std::vector<int>(numbers.begin(), numbers.end()))
      if (m > kEvery && (m + p - 1) / p * p <= samples) numbers.insert((m + p - 1) / p * p);
  }
  return {numbers.begin(), numbers.end()};
}

Phase CandidateMaker::unpartitioned_phase(const Recompute& recompute, const PlannedSchedule& schedule,
                                          int num_micro_batches) const {
  Phase unpartitioned = unpartitioned_;
  unpartitioned.recompute = recompute;
  unpartitioned.schedule = schedule.name;
  unpartitioned.virtual_stages = schedule.virtual_stages;
  unpartitioned.num_micro_batches = num_micro_batches;
  if (const int slices = token_slices_of(problem_.options, schedule.name); slices > 1)
    unpartitioned.token_slices = equal_slices(static_cast<int>(longest_sample(unpartitioned)), slices);
  if (problem_.profile.workload)
    unpartitioned.largest_micro_batch_tokens =
        largest_micro_batch_tokens(unpartitioned.layout, num_micro_batches, problem_.options.global_batch_size,
                                   num_nodes_, *problem_.profile.workload);
  return unpartitioned;
}

std::variant<std::optional<Candidate>, Infeasible> CandidateMaker::make(Phase unpartitioned, Nanoseconds limit_ns) {
  if (unpartitioned.virtual_stages > 1) return looped_partition(unpartitioned, limit_ns);
  const StageBound bound = bound_of(unpartitioned);
  if (problem_.options.partitioner == Partitioner::pipetransformer_greedy) {
    auto partition = published_partition();
    if (auto* none = std::get_if<Infeasible>(&partition)) return *none;
    unpartitioned.partition = std::get<Partition>(std::move(partition));
    Candidate candidate = with_memory(std::move(unpartitioned));
    candidate.bound_ns = bound.of(candidate.phase.partition);
    return std::optional(std::move(candidate));
  }
  if (!problem_.options.partition.empty()) {
    unpartitioned.partition = problem_.options.partition;
    Candidate candidate = with_memory(std::move(unpartitioned));
    candidate.bound_ns = bound.of(candidate.phase.partition);
    return std::optional(std::move(candidate));
  }
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  const auto by_time = [&](int pipeline_rank, int begin, int first, auto&& visit) {
    for (int end = first; end <= n;) {
      const StageBound::Terms terms = bound.terms(pipeline_rank, {begin, end});
      end = visit(end, terms.total_ns(), terms.rising_ns());
    }
  };
  auto cut =
      cut_chain(n, unpartitioned.layout.pipeline_parallel_size, keeping_pins(problem_.options.pins, by_time), limit_ns);
  if (!cut) return std::optional<Candidate>();
  unpartitioned.partition = std::move(cut->partition);
  Candidate candidate = with_memory(unpartitioned);
  candidate.bound_ns = cut->largest;
  if (candidate.missing_bytes == 0) return std::optional(std::move(candidate));
  return exact_that_fits(unpartitioned, bound, limit_ns);
}

std::optional<Candidate> CandidateMaker::with_even_work(Phase phase) {
  if (phase.virtual_stages > 1) return std::nullopt;
  const StageBound bound = bound_of(phase);
  phase.partition = with_even_stages(phase, bound);
  Candidate candidate = with_memory(std::move(phase));
  candidate.bound_ns = bound.of(candidate.phase.partition);
  return candidate;
}

CandidateMaker::RankMemories::RankMemories(CandidateMaker& maker, const Phase& unpartitioned)
    : memory_(unpartitioned, maker.problem_.profile, maker.problem_.options.optimizer, maker.problem_.options.dtype) {
  const int n = static_cast<int>(maker.problem_.profile.model.layers.size());
  for (int k = 0; k < unpartitioned.layout.pipeline_parallel_size; ++k) {
    const std::vector<LayerCost>& layers = maker.layers_on(unpartitioned, k);
    const auto known = of_device_.try_emplace(layers.data(), memory_, layers, LayerRange{0, n}).first;
    of_rank_.push_back(&known->second);
  }
}

std::vector<CandidateMaker::Room> CandidateMaker::rooms_of(const Phase& unpartitioned, const RankMemories& memories) {
  const auto& in_flight = this->in_flight(unpartitioned, 0);  // a frozen stage keeps nothing, whatever is in flight
  const std::int64_t parts = num_slices(unpartitioned) > 1 ? longest_sample(unpartitioned) : 1;
  std::vector<Room> rooms;
  for (int k = 0; k < unpartitioned.layout.pipeline_parallel_size; ++k) {
    std::int64_t most = 0;
    for (const StagesInFlight& moment : in_flight[k])
      most = std::max(most, moment.front().before_backward + moment.front().before_weights);
    rooms.push_back({.limit = limit_of(unpartitioned, k),
                     .memory = memories.on(k),
                     .layers = layers_on(unpartitioned, k),
                     .in_flight = in_flight[k],
                     .first_trainable_layer = unpartitioned.first_trainable_layer,
                     .max_in_flight = most,
                     .parts = parts});
  }
  return rooms;
}

RankMemory CandidateMaker::Room::needed_by(LayerRange stage) const {
  return together(std::array{memory.of(stage)}, in_flight);
}

Bytes CandidateMaker::Room::needed_by_longer(const RankMemory& need, LayerRange stage) const {
  const int input = std::max(stage.begin, first_trainable_layer) - 1;
  const Bytes output = input < 0 ? 0 : layers[input].output_activation_bytes;
  return need.rising() - max_in_flight * ((output + parts - 1) / parts);
}

bool CandidateMaker::may_fit(const Phase& unpartitioned) {
  const RankMemories memories(*this, unpartitioned);
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  int begin = 0;
  for (const Room& room : rooms_of(unpartitioned, memories)) {
    if (!room.limit || begin == n) return true;
    int end = begin;
    for (; end < n; ++end) {
      const LayerRange stage = {begin, end + 1};
      if (room.needed_by_longer(room.needed_by(stage), stage) > *room.limit) break;
    }
    begin = end;
  }
  return begin == n;
}

bool CandidateMaker::fits_if_filled(const Phase& unpartitioned) {
  if (unpartitioned.virtual_stages > 1 || !problem_.options.pins.empty()) return false;
  const RankMemories memories(*this, unpartitioned);
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  int begin = 0, later = unpartitioned.layout.pipeline_parallel_size;
  for (const Room& room : rooms_of(unpartitioned, memories)) {
    --later;
    int longest = room.limit ? begin : n - later;
    for (int end = begin + 1; room.limit && end <= n - later; ++end) {
      const RankMemory need = room.needed_by({begin, end});
      if (need.total() <= *room.limit) longest = end;
      if (room.needed_by_longer(need, {begin, end}) > *room.limit) break;
    }
    if (longest == begin) return false;
    begin = longest;
  }
  return begin == n;
}

std::optional<Candidate> CandidateMaker::exact_that_fits(const Phase& unpartitioned, const StageBound& bound,
                                                         Nanoseconds limit_ns) {
  const RankMemories memories(*this, unpartitioned);
  const std::vector<Room> rooms = rooms_of(unpartitioned, memories);
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  const auto that_fit = [&](int pipeline_rank, int begin, int first, auto&& visit) {
    const Room& room = rooms[pipeline_rank];
    for (int end = first; end <= n;) {
      const StageBound::Terms terms = bound.terms(pipeline_rank, {begin, end});
      Nanoseconds value = terms.total_ns();
      if (room.limit) {
        const RankMemory need = room.needed_by({begin, end});
        if (room.needed_by_longer(need, {begin, end}) > *room.limit) return;
        if (need.total() > *room.limit) value = kNotAllowed;
      }
      end = visit(end, value, terms.rising_ns());
    }
  };
  auto cut = cut_chain(n, unpartitioned.layout.pipeline_parallel_size, keeping_pins(problem_.options.pins, that_fit),
                       limit_ns);
  if (!cut) return std::nullopt;
  Phase phase = unpartitioned;
  phase.partition = std::move(cut->partition);
  Candidate candidate = with_memory(std::move(phase));
  FROSTPIPE_CHECK(candidate.missing_bytes == 0, "a stage that fits by itself fits in its pipeline");
  candidate.bound_ns = cut->largest;
  return candidate;
}

Candidate CandidateMaker::closest_to_fitting(const Phase& unpartitioned) {
  if (unpartitioned.virtual_stages > 1) return shifted(unpartitioned, bound_of(unpartitioned), kNoLimit);
  const RankMemories memories(*this, unpartitioned);
  const std::vector<Room> rooms = rooms_of(unpartitioned, memories);
  const int n = static_cast<int>(problem_.profile.model.layers.size());
  const auto by_missing = [&](int pipeline_rank, int begin, int first, auto&& visit) {
    const Room& room = rooms[pipeline_rank];
    const Bytes limit = room.limit.value_or(std::numeric_limits<Bytes>::max());
    for (int end = first; end <= n;) {
      const RankMemory need = room.needed_by({begin, end});
      const Bytes least = std::max<Bytes>(0, room.needed_by_longer(need, {begin, end}) - limit);
      end = visit(end, std::max<Bytes>(0, need.total() - limit), least);
    }
  };
  Phase phase = unpartitioned;
  phase.partition =
      cut_chain(n, unpartitioned.layout.pipeline_parallel_size, keeping_pins(problem_.options.pins, by_missing))
          ->partition;
  return with_memory(std::move(phase));
}

std::variant<Partition, Infeasible> CandidateMaker::published_partition() const {
  // Only trainable layers are distributed, by their parameters; the frozen prefix stays on the first stage.
  const int num_stages = unpartitioned_.layout.pipeline_parallel_size;
  const int first = unpartitioned_.first_trainable_layer;
  std::vector<double> active;
  for (int layer = first; layer < static_cast<int>(problem_.profile.model.layers.size()); ++layer) {
    active.push_back(static_cast<double>(problem_.profile.model.layers[layer].parameter_count) / 1e6);
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

const std::vector<std::vector<StagesInFlight>>& CandidateMaker::in_flight(const Phase& phase, int first_stage) {
  auto& known = in_flight_[{phase.schedule, phase.virtual_stages, micro_batches_in_flight(phase), first_stage,
                            phase.token_slices}];
  if (known.empty()) known = peaks_in_flight(phase, first_stage);
  return known;
}

const std::vector<LayerCost>& CandidateMaker::layers_on(const Phase& phase, int pipeline_rank) {
  const MicroBatchSize largest = planned_micro_batch(phase, problem_.options.global_batch_size);
  return costs_.at(problem_.cluster.devices.at(rank_of(phase.layout, pipeline_rank, 0)).type, largest.samples,
                   largest.tokens, phase.layout.tensor_parallel_size);
}

std::optional<Bytes> CandidateMaker::limit_of(const Phase& phase, int pipeline_rank) const {
  std::optional<Bytes> least;
  if (problem_.options.ignore_memory_limit) return least;
  for (const int rank : all_ranks_of(phase.layout, pipeline_rank)) {
    const auto& limit = problem_.cluster.devices.at(rank).memory_limit_bytes;
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

Candidate CandidateMaker::with_memory(Phase phase) {
  const StageMemory price(phase, problem_.profile, problem_.options.optimizer, problem_.options.dtype);
  const auto& moments = in_flight(phase, first_trainable_stage(phase));
  const std::vector<std::vector<int>> stages_on = stages_on_each(phase);
  const std::vector<bool> hand_on = stages_that_hand_on_at_once(phase);
  std::vector<RankMemory> memory;
  for (int pipeline_rank = 0; pipeline_rank < phase.layout.pipeline_parallel_size; ++pipeline_rank) {
    const std::vector<LayerCost>& layers = layers_on(phase, pipeline_rank);
    std::vector<RankMemory> stages;
    for (const int stage : stages_on[pipeline_rank])
      stages.push_back(price.of(phase.partition[stage], layers, hand_on[stage]));
    memory.push_back(together(stages, moments[pipeline_rank]));
  }
  const Bytes missing = problem_.options.ignore_memory_limit ? 0 : missing_bytes(phase, memory, problem_.cluster);
  return {.phase = std::move(phase), .memory = std::move(memory), .missing_bytes = missing};
}

std::vector<Bytes> peak_per_rank(const Phase& phase, const std::vector<RankMemory>& memory, int world_size) {
  std::vector<Bytes> peak(world_size, 0);
  for (int rank = 0; rank < world_size; ++rank) {
    if (const auto coordinate = find_coordinate(phase.layout, rank))
      peak[rank] = memory[coordinate->pipeline_rank].total();
  }
  return peak;
}

Phase with_prediction(const Candidate& candidate, Nanoseconds iteration_ns, const Cluster& cluster) {
  Phase phase = candidate.phase;
  phase.predicted = {
      .iteration_ns = iteration_ns,
      .transformation_ns = 0,
      .peak_memory_bytes = peak_per_rank(phase, candidate.memory, static_cast<int>(cluster.devices.size()))};
  return phase;
}

int tokens_of(const PlanOptions& options, const Profile& profile) {
  const int tokens = options.tokens != 0 || !profile.workload ? options.tokens
                                                              : static_cast<int>(std::lround(profile.workload->tokens));
  if (tokens < 1) {
    throw InvalidInput("tokens", "must be >= 1 where the profile names no workload", std::to_string(tokens));
  }
  return tokens;
}

}  // namespace frostpipe
