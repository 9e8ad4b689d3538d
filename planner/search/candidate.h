#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "plan/memory.h"
#include "planner/search/plan_options.h"
#include "planner/search/stage_bound.h"
#include "simulator/layer_costs.h"

namespace frostpipe {

/// One combination considered by best_phase, complete except for its prediction.
struct Candidate {
  Phase phase;
  std::vector<RankMemory> memory;  // per pipeline rank
  Bytes missing_bytes = 0;         // sum over the ranks that do not fit; 0 = fits, or limits are ignored
  Nanoseconds bound_ns = 0;        // StageBound of its partition
};

/// Stands for no limit or no bound; kNotAllowed (chain_partition.h) is larger.
constexpr Nanoseconds kNoLimit = std::numeric_limits<Nanoseconds>::max() - 1;

/// The common properties of the candidates of one search.
struct PipelineShape {
  int pipeline_parallel_size = 1;
  int first_trainable_layer = 0;
  CacheUse cache;
};

/// Makes the candidates of one shape.
class CandidateMaker {
 public:
  CandidateMaker(const PlanningProblem& problem, const PipelineShape& shape, LayerCosts& costs);

  /// Returns the numbers of micro-batches worth trying, ascending: the one that options fix, or every one up to 32 and
  /// beyond that for each micro-batch size the least number that gives this size. If any schedule may be used, the next
  /// multiple of p after each of the latter is also tried.
  std::vector<int> numbers_of_micro_batches() const;

  /// Returns a phase with this choice and everything that candidates share; its partition is empty.
  Phase unpartitioned_phase(const Recompute& recompute, const PlannedSchedule& schedule, int num_micro_batches) const;

  /// Makes a partition for the phase and computes its memory. With the exact partitioner it is the one with the least
  /// StageBound among those that fit; none if no partition that fits has a bound of at most limit_ns. Three kinds of
  /// partitions are returned whether they fit or not: that of the published greedy partitioner (Infeasible if a stage
  /// is left empty), the one that options give, and with several stages per rank that of looped_partition.
  std::variant<std::optional<Candidate>, Infeasible> make(Phase unpartitioned, Nanoseconds limit_ns);

  /// Makes a partition with several stages per rank. Returns none if it is clear that no partition fits with a bound of
  /// at most limit_ns. Otherwise the chain is cut into stages that are as equal as possible. Then the cuts are shifted,
  /// by steps that are halved down to one layer, while fewer bytes are missing, or equally few at a smaller StageBound.
  /// This is not exact: it may miss a partition that fits or is faster. Nothing is shifted if the equal stages fit and
  /// their bound exceeds limit_ns by more than a tenth.
  std::optional<Candidate> looped_partition(const Phase& unpartitioned, Nanoseconds limit_ns);

  /// Tests quickly whether a partition with one stage per rank may fit. Returns false only if none fits. Every pipeline
  /// rank takes as many layers as it can keep, ignoring the workspace and the input of its first layer, so in no
  /// partition do the first k ranks hold more layers, for any k.
  bool may_fit(const Phase& unpartitioned);

  /// Tests quickly whether a partition fits. Returns true only if one does, and always false with several stages per
  /// rank or pins. Every pipeline rank takes as many layers as fit there, except those that later ranks need to have
  /// one each.
  bool fits_if_filled(const Phase& unpartitioned);

  /// Returns the partition with the fewest missing bytes on the rank that misses most; with several stages per rank
  /// that of looped_partition without a limit. Pins must allow a partition.
  Candidate closest_to_fitting(const Phase& unpartitioned);

  /// Returns the phase with the partition that minimizes the longest work of a rank; none with several stages per rank.
  /// Pins must allow a partition.
  std::optional<Candidate> with_even_work(Phase phase);

  /// Returns `phase` unchanged, with its memory.
  Candidate with_memory(Phase phase);

  StageBound bound_of(const Phase& unpartitioned) { return {unpartitioned, problem_, costs_}; }

 private:
  class LoopedPrices;
  /// The memory of any stage on any pipeline rank of a phase.
  class RankMemories {
   public:
    RankMemories(CandidateMaker& maker, const Phase& unpartitioned);
    /// Returns the memory of stages on a pipeline rank.
    const StageMemory::OnDevice& on(int pipeline_rank) const { return *of_rank_[pipeline_rank]; }

   private:
    StageMemory memory_;
    std::map<const LayerCost*, StageMemory::OnDevice> of_device_;  // by the first layer's costs
    std::vector<const StageMemory::OnDevice*> of_rank_;
  };
  /// The memory limit of a pipeline rank with one stage, and what is needed to compare a stage with it.
  struct Room {
    std::optional<Bytes> limit;
    const StageMemory::OnDevice& memory;
    const std::vector<LayerCost>& layers;
    const std::vector<StagesInFlight>& in_flight;
    int first_trainable_layer = 0;
    std::int64_t max_in_flight = 0, parts = 1;  // the most micro-batches in flight, in units of 1 / parts of one

    /// Returns the memory of a rank with this stage.
    RankMemory needed_by(LayerRange stage) const;
    /// Returns a lower bound on the memory of any longer stage that contains this one, which needs `need`. It leaves
    /// out the saved input, which may be smaller at another begin, and the workspace.
    Bytes needed_by_longer(const RankMemory& need, LayerRange stage) const;
  };
  /// Keeps references to its arguments.
  std::vector<Room> rooms_of(const Phase& unpartitioned, const RankMemories& memories);
  /// Returns false only if no partition fits with a bound of at most limit_ns. Layer l needs at least lasting(l) +
  /// held(k) kept(l) bytes on pipeline rank k, and work(l) of its time, weighed by the speeds of the ranks. Each rank
  /// is limited by the scarcer of the two, as a fraction of what the whole model would need there. The fractions that
  /// its layers need sum to at most the fraction that it has, so if a partition fits, the least fractions of all layers
  /// sum to at most the fractions of all ranks.
  bool may_fit_looped(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns);
  Candidate shifted(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns);
  /// Returns the partition that minimizes the longest work of a stage, for one stage or several per rank. Partitions
  /// are cached, since schedules and ways to recompute often share their work.
  const Partition& with_even_stages(const Phase& unpartitioned, const StageBound& bound);
  std::variant<Partition, Infeasible> published_partition() const;
  const std::vector<std::vector<StagesInFlight>>& in_flight(const Phase& phase, int first_stage);
  const std::vector<LayerCost>& layers_on(const Phase& phase, int pipeline_rank);
  /// Returns the least memory limit of the replicas of a pipeline rank.
  std::optional<Bytes> limit_of(const Phase& phase, int pipeline_rank) const;
  std::optional<Candidate> exact_that_fits(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns);

  PlanningProblem problem_;
  LayerCosts& costs_;
  int num_nodes_;
  Phase unpartitioned_;  // common to all candidates
  std::map<std::tuple<std::string, int, int, int, std::vector<int>>, std::vector<std::vector<StagesInFlight>>>
      in_flight_;  // by schedule, stages per rank, micro-batches, first trainable stage, token slices
  std::map<std::vector<Nanoseconds>, Partition> even_stages_;  // by the work of all stages' layers
};

/// Returns the peak bytes of every rank of the world, 0 for idle ones.
std::vector<Bytes> peak_per_rank(const Phase& phase, const std::vector<RankMemory>& memory, int world_size);

/// Returns the candidate's phase with its prediction.
Phase with_prediction(const Candidate& candidate, Nanoseconds iteration_ns, const Cluster& cluster);

/// Returns options.tokens, or if that is 0 those of the profile's workload. Throws InvalidInput if there is neither.
int tokens_of(const PlanOptions& options, const Profile& profile);

}  // namespace frostpipe
