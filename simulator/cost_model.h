#pragma once
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/schedule.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Piece of an action: compute on the rank, or a collective that starts when all its ranks have arrived.
struct Segment {
  Nanoseconds duration_ns = 0;
  /// Empty for compute; else the ranks that meet, in ascending order.
  std::vector<int> collective_ranks;
  bool operator==(const Segment&) const = default;
};

/// What a message costs: the link is occupied, then the message arrives latency later.
struct TransferCost {
  Nanoseconds occupancy_ns = 0;
  Nanoseconds latency_ns = 0;
  /// Rendezvous: it begins when the sender stands at its SEND and the receiver at its RECV, and holds both for
  /// occupancy and latency. Else the sender goes on at once.
  bool holds_both = false;
  bool operator==(const TransferCost&) const = default;
};

/// A link that several ranks' messages share, and how long one of them keeps it.
struct SharedOccupancy {
  int link = 0;
  Nanoseconds occupancy_ns = 0;
  bool operator==(const SharedOccupancy&) const = default;
};

/// How long things take. Ranks are those of `layout`.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Segments of a compute action, REDUCE_GRAD or OPTIMIZER_STEP, in order; none = takes no time.
  virtual std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const = 0;
  /// Of F, B, I, W and RECOMPUTE, which have no collective: the sum of the segments. Override it where that needs no
  /// list.
  virtual Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const {
    Nanoseconds sum = 0;
    for (const Segment& segment : segments(action, pipeline_rank, replica)) sum += segment.duration_ns;
    return sum;
  }
  /// Cost of a SEND from the action's stage to its neighbour.
  virtual TransferCost transfer(const Action& send, int replica) const = 0;
  /// Shared links that a SEND's message passes, beside its own: it begins when all of them are free, each keeps it for
  /// its occupancy, and it arrives latency after the longest.
  virtual std::vector<SharedOccupancy> shared_occupancies(const Action& /*send*/, int /*replica*/) const { return {}; }
  /// True if any SEND has some.
  virtual bool shares_links() const { return false; }
};

/// Equal cost for every stage and micro-batch (B = input + weight gradient, on the first stage too), equal
/// messages: for closed forms and what-ifs without files. REDUCE_GRAD is free and nobody meets at OPTIMIZER_STEP.
struct UniformCosts {
  Nanoseconds forward_ns = 0, input_gradient_ns = 0, weight_gradient_ns = 0;
  Nanoseconds latency_ns = 0;
  Nanoseconds update_ns = 0;
  Nanoseconds occupancy_ns = 0;  // of a link, per message
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

/// Costs of a phase from a profile and a cluster. Each rank is priced by its own device's measurements.
///
/// F: sum of forward_ns over the stage's trainable layers and frozen_forward_ns over its frozen ones. B: input + weight
/// gradient of trainable layers, and the forward of those that are computed again; the run's first trainable layer has
/// no input gradient. I and W of a schedule that splits B: as measured apart, with those forwards in I. REDUCE_GRAD:
/// all-reduce over its replicas of those gradients of the stage that may differ from zero (reduced_gradient_bytes);
/// then, while nothing is frozen, first and last rank add the gradients of tied parameters, priced as an all-reduce of
/// the two. OPTIMIZER_STEP: update_ns of the stage's trainable layers, with an all-reduce of 8 bytes before the first
/// of each rank (the global gradient norm) over all ranks that have something to train: a rank whose stages are frozen
/// as a whole has no OPTIMIZER_STEP and may run ahead into the next iteration. A message is the output activation of
/// the layer before the cut, and costs nothing between stages of one rank; over shared links it competes with those of
/// other ranks. With t tensor ranks a rank stands for all t: layers cost what was measured with t (their collectives
/// included), gradients and updates are 1 / t, and a message between nodes is scattered and gathered (Communication).
/// Gradient reductions of one node's stages run side by side over its shared links; where they overlap, REDUCE_GRAD is
/// what is left after the last backward: max over layers, in the order of the backward, of (when its gradient is there)
/// + (the reductions from it on). A micro-batch without samples costs nothing and sends nothing.
///
/// Where coordinates of the layout are vacant, ranks are those of layout_of_lists and micro-batches are numbered over
/// all replicas: each is computed, sent and received by the rank that runs it, and the replicas that are left meet.
///
/// A token slice costs what cost_of_slice() says of samples that are all of the mean length: F and B, and what is sent.
/// A slice without tokens costs nothing and sends nothing.
///
/// With a cache, expected times: a frozen layer of stage 0 is computed for computed_fraction() of the samples,
/// which costs expected_frozen_forward_ns(). CACHE_READ: what is found of use to stage 0, CACHE_WRITE: what is
/// not at the boundary, of whole samples with the first and the last token slice, each by the entry and by the byte of
/// a mean sample, both as compute: reading ahead shares the rank's core. Priced as float32 entries. REDUCE_GRAD begins
/// with replica_wait_ns(), what replicas wait for each other where the cache has more of one's samples.
///
/// Everything is looked up when constructed; nothing of the arguments is kept. Throws InvalidInput if the cluster has
/// too few devices, or as cost_of and update_cost_of do.
class ProfileCostModel final : public CostModel {
 public:
  ProfileCostModel(const Phase& phase, const StepSettings& settings, const Profile& profile, const Cluster& cluster);
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override;
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const override;
  TransferCost transfer(const Action& send, int replica) const override;
  std::vector<SharedOccupancy> shared_occupancies(const Action& send, int replica) const override;
  bool shares_links() const override { return shares_links_; }
  /// All replicas do the same at the same time: equal micro-batches, devices and links.
  bool replicas_are_alike() const;

 private:
  /// One micro-batch of one size, or one token slice of it, through one stage.
  struct StageCost {
    Nanoseconds forward_ns = 0;
    Nanoseconds input_gradient_ns = 0;
    Nanoseconds weight_gradient_ns = 0;
    Nanoseconds recompute_ns = 0;  // forwards that are done again in a backward
    SplitBackward split;           // where the schedule splits it
    Bytes sent_forward_bytes = 0, sent_backward_bytes = 0;
    TransferCost send_forward, send_backward;
    std::vector<SharedOccupancy> shared_forward, shared_backward;
    Nanoseconds cache_read_ns = 0, cache_write_ns = 0;
    bool operator==(const StageCost&) const = default;
  };
  /// What a stage costs on the rank of one replica.
  struct RankCost {
    std::vector<StageCost> smaller, larger;  // by slice; micro-batch sizes differ by at most one
    Nanoseconds update_ns = 0;
    bool operator==(const RankCost&) const = default;
  };
  class Prices;
  const RankCost& rank_cost(int stage, int replica, int micro_batch) const;
  /// Of the layout, by pipeline rank and replica as the lists have them.
  int replica_of(int pipeline_rank, int replica) const {
    return replica_of_list_.empty() ? replica : replica_of_list_.at(pipeline_rank);
  }
  const StageCost& stage_cost(const Action& action, int replica) const;

  int data_parallel_size_ = 1;
  int num_micro_batches_ = 1;
  std::vector<int> replica_of_list_;  // where coordinates are vacant
  int costs_per_stage_ = 1;           // one for each replica, or where coordinates are vacant, each micro-batch of all
  std::vector<int> micro_batch_sizes_;  // [replica * num_micro_batches + micro_batch]
  int smaller_size_ = 0;
  std::vector<RankCost> rank_costs_;        // each once of ranks in like places
  std::vector<int> cost_of_rank_;           // which of them: [stage * costs_per_stage + replica or micro-batch]
  std::vector<Nanoseconds> tensor_sum_ns_;  // per stage: tensor ranks add up gradients, which replicas then reduce
  std::vector<Segment> reduce_gradient_;    // per stage
  std::vector<Segment> reduce_tied_;        // per replica; none where nothing is tied
  Segment gradient_norm_;
  std::vector<bool> meets_for_norm_;  // per stage: its OPTIMIZER_STEP is the first of its rank
  std::vector<bool> exchanges_tied_;  // per stage: its REDUCE_GRAD is the last of a rank at the end of the model
  bool shares_links_ = false;
};

}  // namespace frostpipe
