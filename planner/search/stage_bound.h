#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/search/phase_work.h"
#include "planner/search/plan_options.h"
#include "simulator/layer_costs.h"

namespace frostpipe {

/// A lower bound on a phase's iteration time from one of its stages. It holds for any order of actions, as long as a
/// stage is on one pipeline rank and all ranks synchronize once per iteration (GPipe, 1F1B, ZB-H1 and all similar
/// orders).
///
/// For layers [b, e) on pipeline rank k, on the replica that works longest there (replica 0, which has the larger
/// micro-batches, unless the replicas have unequal devices):
///
///   max(to(b) + update of layer 0, update) + work + max(back(b), reduction) + norm
///
/// and, for the micro-batch whose forward is the last there, or whose backward is the first,
///
///   to(b) + update of layer 0 + max(all forwards + one backward, one forward + all backwards) + forward and backward
///   through [e, n) with messages + back(b) + norm
///
/// work: forward and backward of all the replica's micro-batches through the stage. to(b): the first micro-batch's
/// forward through the trainable layers before b, with k messages. back(b): the last micro-batch's backward through
/// them, then the reduction of layer 0's gradients. Proof: an iteration ends when all trainable ranks synchronize (the
/// gradient norm). After that pipeline rank k updates its weights, and pipeline rank 0 updates at least its layer 0
/// before its first forward. Rank k has no work before a micro-batch has passed [0, b); then it does its work, and its
/// last backward is followed both by the backward through [0, b) and by the reduction of its own gradients, which
/// precede the next synchronization. Frozen stages run ahead, so to and back count trainable layers only. to, back and
/// messages use the smaller micro-batches, with token slices their smallest slice, the fastest device and the cheapest
/// link between the pipeline ranks. The reduction of all gradients is concave in their bytes (the minimum of some
/// straight lines), so its chord is below it. With expert parallelism the reduction of the experts' gradients follows
/// it, over the replicas with the same experts, and never overlaps with a backward.
///
/// If the schedule splits the backward, earlier stages wait only for I: back(b) and the single micro-batch's way
/// through [e, n) count I alone, and "all backwards" there means all I. The stage's own W may be done while the last
/// micro-batch is on its way back, so back(b) counts only as far as it exceeds them.
///
/// With several stages per rank the first term holds for all stages of a rank together, with the first stage's b: a
/// rank's first action of an iteration is a forward of its first stage, and its last one a backward of it, since any
/// action of a later stage is after the former and before the latter of the same micro-batch. The second term does not
/// hold; it is replaced by one micro-batch through all layers and back, after the update of layer 0 and before the
/// norm.
///
/// Where iterations overlap, a rank is held up only by its own list: to and back are 0, and so is the second term.
class StageBound {
 public:
  /// Computes the bound for the layout, micro-batches, frozen layers, cache and recomputation of `unpartitioned`, whose
  /// partition is ignored. Throws InvalidInput if a size was not measured.
  StageBound(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs);
  StageBound(StageBound&&) = default;

  /// The terms of layers [begin, end) on `pipeline_rank`. to_ns is to(b) + update of layer 0; through_ns is the part of
  /// the second formula between that and back(b).
  struct Terms {
    Nanoseconds to_ns = 0, update_ns = 0, work_ns = 0, back_ns = 0, reduction_ns = 0, norm_ns = 0, through_ns = 0;
    Nanoseconds weights_ns = 0;  // the part of work_ns that is W, if the schedule splits the backward
    /// Returns what remains of back(b) when every W is done.
    Nanoseconds draining_ns() const { return std::max<Nanoseconds>(0, back_ns - weights_ns); }
    /// Returns the part of the total that never decreases as the stage's end grows.
    Nanoseconds rising_ns() const {
      const Nanoseconds all_to_reduction = work_ns + reduction_ns, last_on_its_way = work_ns - weights_ns + back_ns;
      return std::max(to_ns, update_ns) + std::max(all_to_reduction, last_on_its_way) + norm_ns;
    }
    Nanoseconds total_ns() const { return std::max(rising_ns(), to_ns + through_ns + back_ns + norm_ns); }
  };
  Terms terms(int pipeline_rank, LayerRange stage) const;

  /// Returns only the work_ns of those terms, for sweeps that need nothing else.
  Nanoseconds work_ns(int pipeline_rank, LayerRange stage) const {
    const std::vector<Nanoseconds>& before = work_of_pipeline_rank_[pipeline_rank]->all;
    return before[stage.end] - before[stage.begin];
  }

  /// Returns for each layer, and the end, the work_ns of the layers before it on a pipeline rank. Ranks with devices of
  /// one type return the same object.
  const std::vector<Nanoseconds>& work_before(int pipeline_rank) const {
    return work_of_pipeline_rank_[pipeline_rank]->all;
  }

  /// Returns the weight y_k <= 1 of a pipeline rank by the speed of its devices (see bound_of_any_partition); 1 where
  /// all are equal.
  double weight(int pipeline_rank) const { return weights_.empty() ? 1 : weights_[pipeline_rank]; }

  /// Returns the least product of a pipeline rank's weight and its work_ns of this layer, over all ranks.
  double least_weighed_work(int layer) const;

  /// Returns the most work_ns that a pipeline rank's stages have in a partition whose bound is at most `limit_ns`; 0 if
  /// that is impossible.
  Nanoseconds most_work_ns(int pipeline_rank, Nanoseconds limit_ns) const;

  /// Returns the terms of a pipeline rank's stages together, for a partition or its beginning.
  Terms on_rank(const Partition& partition, int pipeline_rank) const;

  /// Returns the total of terms().
  Nanoseconds at(int pipeline_rank, LayerRange stage) const;

  /// Returns the StageBound of a partition: the maximum over its ranks, and at least of_any().
  Nanoseconds of(const Partition& partition) const;

  /// Returns a bound that holds for any partition with several stages per rank: the time of one micro-batch through all
  /// layers and back. With one stage per rank it is 0.
  Nanoseconds of_any() const;

 private:
  friend Nanoseconds bound_of_any_partition(const Phase&, const PlanningProblem&, LayerCosts&);
  StageBound(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs, const PhaseWork& work);
  void add_updates(const PhaseWork& work, const PlanningProblem& problem, const ParallelLayout& layout,
                   LayerCosts& costs);
  void add_gradients(const Phase& unpartitioned, const PlanningProblem& problem);
  Nanoseconds of_any_partition(const Phase& unpartitioned, const PhaseWork& work) const;
  /// Returns the least time for which rank k waits before its work, or after it. At least k layers precede its first
  /// stage. The rank's own W may overlap with their backward.
  Nanoseconds least_to_ns(int k) const;
  Nanoseconds least_back_ns(int k) const;

  /// The chord of the time of a reduction, from no bytes to those of all layers.
  struct Chord {
    static Chord of(const std::function<Nanoseconds(Bytes)>& reduction_ns, Bytes most);
    Nanoseconds at(Bytes bytes) const {
      return static_cast<Nanoseconds>(latency_ns + static_cast<double>(bytes) * ns_per_byte);
    }
    double latency_ns = 0, ns_per_byte = 0;
  };

  int pipeline_ranks_ = 1;
  int virtual_stages_ = 1;
  bool overlaps_ = false;                    // whether iterations overlap
  std::vector<std::vector<int>> stages_on_;  // by pipeline rank
  int first_trainable_layer_ = 0;
  WorkOfKinds work_;                                                  // prefix sums over layers
  std::vector<const WorkByLayer*> work_of_pipeline_rank_;             // pointers into work_
  std::vector<Nanoseconds> chain_forward_, chain_backward_, update_;  // prefix sums over layers
  std::vector<Nanoseconds> messages_;                                 // one way; prefix sums over pipeline ranks
  std::vector<Bytes> parameters_bytes_, experts_bytes_;               // of trainable layers; prefix sums over layers
  std::vector<Chord> reduction_, experts_reduction_;                  // by pipeline rank
  Nanoseconds norm_ns_ = 0;
  bool splits_backward_ = false;
  std::vector<double> weights_;  // by pipeline rank; empty if all are 1
};

/// Returns a closed form that is at most the least StageBound over all partitions. For m micro-batches of layers that
/// could be cut anywhere, a StageBound T satisfies T >= r a(k - 1) + m (a(k) - a(k - 1)), where a(k) is one mean
/// micro-batch's time through pipeline ranks up to k, and r the least ratio of the smaller micro-batch's time to the
/// mean one's. Hence a(p) <= T / r (1 - (1 - r / m)^p). Also, T is at least the work of any single layer, which is on
/// one pipeline rank. With several stages per rank, or a split backward, the bound on T is instead the sum of three
/// even shares over the ranks: of all work; of the time that ranks wait before theirs (at least k layers precede rank
/// k's first stage) or of all updates; and of the time that they wait after it or of all reductions. T is then also at
/// least the time of one micro-batch through all layers and back. Where iterations overlap, nothing waits.
///
/// A layer's work in these sums is its least time on any pipeline rank, w. If the ranks have unequal devices, the same
/// holds for weights y <= 1 of the ranks, and the larger of both bounds counts. Let w_k be a layer's time on rank k and
/// v the least y_k w_k over all ranks, so w_k >= v / y_k and w >= v. Rank k with the layers L works at least the sum of
/// v over L, divided by y_k. So all v sum to at most T times the sum of all y_k (shares in proportion to y_k, not even
/// ones), and with a(k) in terms of v, T >= r a(k - 1) + m / y_k (a(k) - a(k - 1)), hence
/// a(p) <= T / r (1 - product of (1 - r y_k / m)). Any weights give a bound. Those used maximise the sum of all v
/// divided by that of all y_k (exactly for two types of devices), which makes them about the devices' speeds: with one
/// ratio of speeds for all layers, T is at least the work divided by the sum of all speeds.
Nanoseconds bound_of_any_partition(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs);

}  // namespace frostpipe
