#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "planner/search/layer_costs.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// All micro-batches of a replica: all work, forwards alone, and W alone where the schedule splits the backward.
struct WorkByLayer {
  std::vector<Nanoseconds> all, forwards, weights;
};

/// What an iteration of a phase takes at least because of one of its stages, whatever the order of the actions, as long
/// as a stage is on one pipeline rank and all meet once an iteration (GPipe, 1F1B, ZB-H1 and all orders like them).
///
/// For layers [b, e) on pipeline rank k, replica 0, which has the larger micro-batches:
///
///   max(to(b) + update of layer 0, update) + work + max(back(b), reduction) + norm
///
/// and, for the micro-batch whose forward is the last there, or whose backward is the first,
///
///   to(b) + update of layer 0 + max(all forwards + one backward, one forward + all backwards) + forward and backward
///   through [e, n) with messages + back(b) + norm
///
/// work: forward and backward of all the replica's micro-batches through the stage. to(b): the first micro-batch's
/// forward through the layers before b, which train, with k messages; back(b): the last micro-batch's backward through
/// them and then the reduction of layer 0's gradients. Proof: the iteration's end is the meeting of all trainable ranks
/// (the gradients' norm); after it pipeline rank k updates and pipeline rank 0 updates at least its layer 0 before its
/// first forward; k works on nothing before a micro-batch has come through [0, b), then does its work, and its last
/// backward is followed by the backward through [0, b) and by its own gradients' reduction, which both precede the next
/// meeting. Stages that are frozen run ahead of the meetings: to and back count layers that train. to, back and
/// messages use the smaller micro-batches, with token slices the smallest slice of them, the fastest device and the
/// cheapest link between the pipeline ranks. The reduction of all gradients is concave in their bytes (the least of
/// some straight lines); its chord is below it.
///
/// Where the schedule splits the backward, what passes on to the stages before is I: back(b) and the one micro-batch's
/// way through [e, n) count I alone, and all backwards there mean all I. The stage's own W may be done while the last
/// micro-batch is on its way back, so back(b) counts only as far as it is longer than they are.
/// With several stages per rank the first term holds of a rank's stages together, from the first one's b: what a rank
/// does first in an iteration is a forward of its first stage, and last a backward of it, for whatever it does of a
/// later stage comes after the former and before the latter of the same micro-batch. The second term does not hold of
/// them; in its place one micro-batch goes through all layers and back, after the update of layer 0 and before the
/// norm.
/// Where iterations overlap, nothing but its own list holds up a rank: to and back are 0, and so is the second term.
class StageBound {
 public:
  /// For the layout, micro-batches, frozen layers, cache and recomputing of `unpartitioned`, whose partition is not
  /// looked at. Throws InvalidInput where a size was not measured.
  StageBound(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs);
  StageBound(StageBound&&) = default;

  /// The terms of layers [begin, end) on `pipeline_rank`.
  struct Terms {
    Nanoseconds to_ns = 0, update_ns = 0, work_ns = 0, back_ns = 0, reduction_ns = 0, norm_ns = 0, through_ns = 0;
    Nanoseconds weights_ns = 0;  // of the work: all W, where the schedule splits the backward
    /// What is left of back(b) when every W is done.
    Nanoseconds draining_ns() const { return std::max<Nanoseconds>(0, back_ns - weights_ns); }
    /// That part of the total which never falls as the stage's end grows.
    Nanoseconds rising_ns() const {
      const Nanoseconds all_to_reduction = work_ns + reduction_ns, last_on_its_way = work_ns - weights_ns + back_ns;
      return std::max(to_ns, update_ns) + std::max(all_to_reduction, last_on_its_way) + norm_ns;
    }
    Nanoseconds total_ns() const { return std::max(rising_ns(), to_ns + through_ns + back_ns + norm_ns); }
  };
  Terms terms(int pipeline_rank, LayerRange stage) const;

  /// The work_ns of those terms alone, for sweeps that ask for nothing else.
  Nanoseconds work_ns(int pipeline_rank, LayerRange stage) const {
    const std::vector<Nanoseconds>& before = work_of_pipeline_rank_[pipeline_rank]->all;
    return before[stage.end] - before[stage.begin];
  }

  /// Those of a pipeline rank's stages together, of a partition or its first part.
  Terms on_rank(const Partition& partition, int pipeline_rank) const;

  /// Their total.
  Nanoseconds at(int pipeline_rank, LayerRange stage) const;

  /// Over the ranks of a partition.
  Nanoseconds of(const Partition& partition) const;

  /// With several stages per rank, whatever the partition: one micro-batch through all layers and back. Else 0.
  Nanoseconds of_any() const;

 private:
  int pipeline_ranks_ = 1;
  int virtual_stages_ = 1;
  bool overlaps_ = false;                    // iterations do
  std::vector<std::vector<int>> stages_on_;  // by pipeline rank
  int first_trainable_layer_ = 0;
  std::map<std::string, WorkByLayer> work_;                           // by device type; sums before each layer
  std::vector<const WorkByLayer*> work_of_pipeline_rank_;             // into the former
  std::vector<Nanoseconds> chain_forward_, chain_backward_, update_;  // sums before each layer
  std::vector<Nanoseconds> messages_;                                 // one way, sum before each pipeline rank
  std::vector<Bytes> parameters_bytes_;                               // of what trains: sums before each layer
  std::vector<double> reduction_ns_per_byte_, reduction_latency_ns_;  // by pipeline rank
  Nanoseconds norm_ns_ = 0;
};

/// At most the least StageBound over all partitions, in one formula. With m micro-batches of layers that could be cut
/// anywhere, T >= r a(k - 1) + m (a(k) - a(k - 1)) where a(k) is one mean micro-batch's time through pipeline ranks up
/// to k and r the least share that the smaller micro-batch's time is of the mean one's; so a(p) <= T / r (1 - (1 - r /
/// m)^p). And a layer is on one pipeline rank. With several stages per rank, or where the backward is split, an even
/// share of all work and of what ranks wait before and after theirs (rank k's first stage has k layers before it or
/// more), and one micro-batch through all layers and back. Where iterations overlap, an even share of all work alone.
Nanoseconds bound_of_any_partition(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs);

}  // namespace frostpipe
