#pragma once
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// A part of an action: compute on the rank, or a collective that starts when all its ranks have arrived.
struct Segment {
  Nanoseconds duration_ns = 0;
  /// The ranks of a collective, ascending; empty for compute.
  std::vector<int> collective_ranks;
  bool operator==(const Segment&) const = default;
};

/// The cost of a message, which occupies the link and arrives one latency later.
struct TransferCost {
  Nanoseconds occupancy_ns = 0;
  Nanoseconds latency_ns = 0;
  /// Rendezvous: the transfer begins when the sender has reached its SEND and the receiver its RECV, and blocks both
  /// for occupancy and latency. If false, the sender continues at once.
  bool holds_both = false;
  bool operator==(const TransferCost&) const = default;
};

/// A link that messages of several ranks share, and how long a message occupies it.
struct SharedOccupancy {
  int link = 0;
  Nanoseconds occupancy_ns = 0;
  bool operator==(const SharedOccupancy&) const = default;
};

/// Durations of actions and messages. Ranks are those of the layout that is simulated.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Returns the segments of a compute action, REDUCE_GRAD, OPTIMIZER_STEP, CACHE_READ or CACHE_WRITE, in order; empty
  /// = the action takes no time.
  virtual std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const = 0;
  /// Returns the time of F, B, I, W or RECOMPUTE, which have no collective. The default sums the segments; override it
  /// if that can be done without a list.
  virtual Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const {
    Nanoseconds sum = 0;
    for (const Segment& segment : segments(action, pipeline_rank, replica)) sum += segment.duration_ns;
    return sum;
  }
  /// Returns the cost of a SEND from the action's stage to its neighbour.
  virtual TransferCost transfer(const Action& send, int replica) const = 0;
  /// Returns the shared links that a SEND's message passes, besides its own link. The message begins when all of them
  /// are free, occupies each for the time given, and arrives one latency after the longest of these times.
  virtual std::vector<SharedOccupancy> shared_occupancies(const Action& /*send*/, int /*replica*/) const { return {}; }
  /// Returns whether any SEND passes shared links.
  virtual bool shares_links() const { return false; }
};

/// Equal costs for every stage and micro-batch (B = input + weight gradient, on the first stage too) and equal
/// messages, for comparison with closed forms and for predictions without a profile. REDUCE_GRAD is free, and
/// OPTIMIZER_STEP does not synchronize ranks.
struct UniformCosts {
  Nanoseconds forward_ns = 0, input_gradient_ns = 0, weight_gradient_ns = 0;
  Nanoseconds latency_ns = 0;
  Nanoseconds update_ns = 0;
  Nanoseconds occupancy_ns = 0;  // time for which a message occupies its link
};
class UniformCostModel final : public CostModel {
 public:
  explicit UniformCostModel(const UniformCosts& costs) : costs_(costs) {}
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override;
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const override;
  TransferCost transfer(const Action& send, int replica) const override;

 private:
  UniformCosts costs_;
};

/// The costs of a phase, from a profile and a cluster. Each rank has the costs measured on its type of device.
///
/// F: sum of forward_ns over the stage's trainable layers and frozen_forward_ns over its frozen ones. B: input + weight
/// gradient of trainable layers, and the forward of recomputed ones; the run's first trainable layer has no input
/// gradient. I and W of a schedule that splits B: as measured separately, with the recomputed forwards in I.
/// REDUCE_GRAD: all-reduce over the replicas of the stage's gradients that may differ from zero
/// (reduced_gradient_bytes); then, while nothing is frozen, the first and the last rank add the gradients of tied
/// parameters, priced as an all-reduce of the two. With expert parallelism it includes the reduction of the experts'
/// gradients, and with sequence parallelism it begins with the sum over tensor ranks of the gradients of parameters
/// that each holds whole. OPTIMIZER_STEP: update_ns of the stage's trainable layers; the first of each rank is preceded
/// by an all-reduce of 8 bytes (the global gradient norm) over all ranks that train. A rank whose stages are all frozen
/// has no OPTIMIZER_STEP and may run ahead into the next iteration. A message is the output activation of the last
/// layer before the stage boundary; it is free between stages of one rank, and on shared links it competes with those
/// of other ranks. With t tensor ranks a rank stands for all t: layers cost what was measured with t (including their
/// collectives), gradients and updates are 1 / t, and a message between nodes is scattered and gathered
/// (Communication). Gradient reductions of one node's stages run side by side over its shared links. If they overlap
/// with the backward, REDUCE_GRAD is the time that is left after the last backward has ended (exposed_reduction_ns). A
/// micro-batch without samples costs nothing and sends nothing.
///
/// With vacant coordinates ranks are those of layout_of_lists, and micro-batches are numbered over all replicas: each
/// is computed, sent and received by the rank that runs it, and collectives are over the remaining replicas.
///
/// A token slice costs cost_of_slice() for samples of the mean length, for F, B and messages. A slice without tokens
/// costs nothing and sends nothing.
///
/// With a cache, times are expected values: a frozen layer of stage 0 is computed for computed_fraction() of the
/// samples, at expected_frozen_forward_ns(). CACHE_READ reads the entries that stage 0 can use; CACHE_WRITE writes
/// those that were not found at the boundary. Both handle whole samples, with the first and the last token slice, and
/// cost a latency per entry and the time for the bytes of a mean sample in float32. They occupy the rank as compute
/// does, since reading ahead shares its core. REDUCE_GRAD includes replica_wait_ns(), the time that replicas wait for
/// each other because the cache holds more samples of one than of another.
///
/// The constructor looks up everything and keeps no reference to its arguments. It throws InvalidInput if the cluster
/// has too few devices or the profile lacks the speed of a cache in use, and what cost_of, update_cost_of and
/// split_backward_of throw.
class ProfileCostModel final : public CostModel {
 public:
  ProfileCostModel(const Phase& phase, const StepSettings& settings, const Profile& profile, const Cluster& cluster);
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override;
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const override;
  TransferCost transfer(const Action& send, int replica) const override;
  std::vector<SharedOccupancy> shared_occupancies(const Action& send, int replica) const override;
  bool shares_links() const override { return shares_links_; }
  /// Returns whether all replicas do the same at the same time: equal micro-batches, devices and links.
  bool replicas_are_alike() const;

  /// The prices of a phase (simulator/profile_prices.h), for callers that change its partition.
  class Prices;
  explicit ProfileCostModel(Prices& prices);
  /// Prices a stage again after its layers have changed.
  void price(int stage, Prices& prices);
  /// Returns the number of samples of a micro-batch.
  int size_of(const Action& action, int replica) const {
    return micro_batch_sizes_.at(replica * num_micro_batches_ + *action.micro_batch);
  }

 private:
  /// The cost of one micro-batch of one size, or of one token slice of it, in one stage.
  struct StageCost {
    Nanoseconds forward_ns = 0;
    Nanoseconds input_gradient_ns = 0;
    Nanoseconds weight_gradient_ns = 0;
    Nanoseconds recompute_ns = 0;  // recomputed forwards in a backward
    SplitBackward split;           // only if the schedule splits it
    Bytes sent_forward_bytes = 0, sent_backward_bytes = 0;
    TransferCost send_forward, send_backward;
    std::vector<SharedOccupancy> shared_forward, shared_backward;
    Nanoseconds cache_read_ns = 0, cache_write_ns = 0;
    bool operator==(const StageCost&) const = default;
  };
  /// The cost of a stage on the rank of one replica.
  struct RankCost {
    std::vector<StageCost> smaller, larger;  // by slice; micro-batch sizes differ by at most one
    Nanoseconds update_ns = 0;
    bool operator==(const RankCost&) const = default;
  };
  /// A micro-batch of one replica; `micro_batch` matters with vacant coordinates only.
  struct Unit {
    int replica = 0, micro_batch = 0;
  };
  /// Returns a micro-batch whose costs are those with this index among the costs of a stage.
  Unit unit_of(int index) const;
  const RankCost& rank_cost(int stage, int replica, int micro_batch) const;
  /// Returns the replica of the layout for a pipeline rank and replica of the schedule's lists.
  int replica_of(int pipeline_rank, int replica) const {
    return replica_of_list_.empty() ? replica : replica_of_list_.at(pipeline_rank);
  }
  const StageCost& stage_cost(const Action& action, int replica) const;

  int data_parallel_size_ = 1;
  int num_micro_batches_ = 1;
  std::vector<int> replica_of_list_;  // with vacant coordinates only
  int costs_per_stage_ = 1;  // one for each replica, or with vacant coordinates for each micro-batch of all replicas
  std::vector<int> micro_batch_sizes_;  // [replica * num_micro_batches + micro_batch]
  int smaller_size_ = 0;
  std::vector<RankCost> rank_costs_;        // one entry for ranks with equal costs
  std::vector<int> cost_of_rank_;           // index of rank_costs_: [stage * costs_per_stage + replica or micro-batch]
  std::vector<Nanoseconds> tensor_sum_ns_;  // per stage: sum over tensor ranks, before replicas reduce gradients
  std::vector<Segment> reduce_gradient_;    // per stage
  std::vector<Segment> reduce_tied_;        // per replica; empty without tied parameters
  Segment gradient_norm_;
  std::vector<bool> reduces_norm_;    // per stage: whether its OPTIMIZER_STEP is the first of its rank
  std::vector<bool> exchanges_tied_;  // per stage: whether its REDUCE_GRAD is the last of a rank at an end of the model
  bool shares_links_ = false;
};

}  // namespace frostpipe
