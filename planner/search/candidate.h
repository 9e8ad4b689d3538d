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
#include "planner/search/layer_costs.h"
#include "planner/search/plan_options.h"
#include "planner/search/stage_bound.h"

namespace frostpipe {

/// One combination that best_phase looks at, complete but for its prediction.
struct Candidate {
  Phase phase;
  std::vector<RankMemory> memory;  // per pipeline rank
  Bytes missing_bytes = 0;         // sum over the ranks that do not fit; 0 = fits, or limits are ignored
  Nanoseconds bound_ns = 0;        // StageBound of its partition
};

constexpr Nanoseconds kNoLimit = std::numeric_limits<Nanoseconds>::max() - 1;

/// What the candidates of one search have in common.
struct PipelineShape {
  int pipeline_parallel_size = 1;
  int first_trainable_layer = 0;
  CacheUse cache;
};

/// Makes the candidates of one shape.
class CandidateMaker {
 public:
  CandidateMaker(const PlanningProblem& problem, const PipelineShape& shape, LayerCosts& costs);

  /// Numbers of micro-batches worth trying: every one up to 32, beyond that for each micro-batch size the least that
  /// makes micro-batches so small. Ascending.
  std::vector<int> numbers_of_micro_batches() const;

  /// What all candidates share with this choice; the partition is empty.
  Phase unpartitioned_phase(const Recompute& recompute, const PlannedSchedule& schedule, int num_micro_batches) const;

  /// A partition for the phase, with what it needs: by the exact partitioner the one with the least StageBound among
  /// those that fit, none if there is none with a bound of at most limit_ns; by the published greedy the one that it
  /// makes, whatever it needs, Infeasible if it leaves a stage empty. With several stages per rank looped_partition's,
  /// whatever it needs.
  std::variant<std::optional<Candidate>, Infeasible> make(Phase unpartitioned, Nanoseconds limit_ns);

  /// With several stages per rank: none where it is plain that no partition fits with a bound of at most limit_ns.
  /// Else the chain cut into stages that are as equal as can be, whose cuts are then shifted one layer at a time while
  /// that lacks fewer bytes, or as few at a smaller StageBound. Not exact: it may miss a partition that fits, or that
  /// is faster. Where the equal stages fit and their bound is a tenth above limit_ns, nothing is shifted.
  std::optional<Candidate> looped_partition(const Phase& unpartitioned, Nanoseconds limit_ns);

  /// One stage per rank. False only where no partition fits: every pipeline rank takes as many layers as it can keep,
  /// but for the workspace and the input of its first layer. No partition then reaches farther by any pipeline rank
  /// than this one does.
  bool may_fit(const Phase& unpartitioned);

  /// The partition that misses the least bytes on the rank that misses most.
  Candidate closest_to_fitting(const Phase& unpartitioned);

  /// The phase, of one stage per rank, with the partition whose longest work of a rank is shortest. None where pins
  /// allow no partition, or with several stages per rank.
  std::optional<Candidate> with_even_work(Phase phase);

  /// `phase` as it is, with what it needs.
  Candidate with_memory(Phase phase);

  /// Of a phase like this.
  StageBound bound_of(const Phase& unpartitioned) { return {unpartitioned, problem_, costs_}; }

 private:
  class LoopedPrices;
  /// What a pipeline rank of one stage has room for.
  struct Room {
    std::optional<Bytes> limit;
    const std::vector<LayerCost>& layers;
    const std::vector<StagesInFlight>& in_flight;
    int first_trainable_layer = 0;
    std::int64_t most_in_flight = 0, parts = 1;  // micro-batches, in how many parts

    /// At most what any longer stage needs that `need`'s, which begins there, is a part of: not the input that it
    /// keeps, which may be smaller where another begins, nor the workspace.
    Bytes needed_by_longer(const RankMemory& need, int begin) const;
  };
  std::vector<Room> rooms_of(const Phase& unpartitioned);
  /// False only where no partition fits with a bound of at most limit_ns. Layer l needs lasting(l) + held(k) kept(l)
  /// bytes or more on pipeline rank k, and work(l) of its time. Each rank is asked for one of the two, that of which it
  /// has less, as a share of what the whole model would need there: the shares of what it has add up to no more than
  /// its own, so all layers' least shares together are at most all ranks' together.
  bool may_fit_looped(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns);
  Candidate shifted(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns);
  std::variant<Partition, Infeasible> published_partition() const;
  const std::vector<std::vector<StagesInFlight>>& in_flight(const Phase& phase, int first_stage);
  const std::vector<LayerCost>& layers_on(const Phase& phase, int pipeline_rank);
  /// Least memory limit of the replicas of a pipeline rank.
  std::optional<Bytes> limit_of(const Phase& phase, int pipeline_rank) const;
  std::optional<Candidate> exact_that_fits(const Phase& unpartitioned, const StageBound& bound, Nanoseconds limit_ns);

  PlanningProblem problem_;
  LayerCosts& costs_;
  int num_nodes_;
  Phase unpartitioned_;  // what all candidates share
  std::map<std::tuple<std::string, int, int, int, std::vector<int>>, std::vector<std::vector<StagesInFlight>>>
      in_flight_;  // by schedule, stages per rank, micro-batches, first stage that trains, token slices
};

/// ", recompute layers"; empty where all is kept.
std::string recompute_note(const Recompute& recompute);

/// Peak bytes of every rank of the world, 0 for idle ones.
std::vector<Bytes> peak_per_rank(const Phase& phase, const std::vector<RankMemory>& memory, int world_size);

/// options.tokens, or the profile's workload where that is 0. Throws InvalidInput if there is neither.
int tokens_of(const PlanOptions& options, const Profile& profile);

}  // namespace frostpipe
