#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/trace.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Live tensor bytes of one rank at its peak, by part.
struct RankMemory {
  Bytes weights = 0;
  Bytes older_weights = 0;      // trainable layers only, where updates are delayed: their second version
  Bytes gradients = 0;          // trainable layers only
  Bytes optimizer_state = 0;    // trainable layers only: two moments for AdamW, none for SGD
  Bytes saved_activations = 0;  // from forward until backward, peak over the schedule
  Bytes workspace = 0;          // largest transient inside one action, with its boundary activations
  Bytes exchange = 0;           // tied gradients as they come from the other end, and what is in flight then
  Bytes cache = 0;       // what a first stage with an activation cache reads ahead: two mini-batches of its replica
  Bytes sent_ahead = 0;  // outputs of one iteration, which a wholly frozen stage may be ahead of its receiver
  /// Of one stage alone, per micro-batch: what lives from F to B, or to I, and from I to W. With token slices the
  /// former is of one token of each sample.
  Bytes until_backward = 0, until_weights = 0;
  /// With token slices: the keys and values of one micro-batch, from the first slice's F to the first slice's B.
  Bytes key_values = 0;
  Bytes total() const { return lasting() + sent_ahead + std::max(saved_activations + workspace, exchange); }
  Bytes lasting() const { return weights + older_weights + gradients + optimizer_state + cache; }
  /// The part that never falls as a stage grows.
  Bytes rising() const { return lasting() + saved_activations; }
  bool operator==(const RankMemory&) const = default;
};

/// Peak micro-batches in flight per pipeline rank: the saved activations of one micro-batch live from its F to its B.
/// Units of one micro-batch through all layers of a rank (a stage of v on one rank counts 1/v). Frozen stages save
/// nothing. Where the backward is split, I leaves `weight_gradient_share` of it for W.
std::vector<double> peak_in_flight(const Schedule& schedule, double weight_gradient_share = 1);

/// Micro-batches that one stage holds something of at one moment.
struct InFlight {
  std::int64_t before_backward = 0;  // between F and B, or I; with token slices: tokens of the longest sample
  int before_weights = 0;            // between I and W
  int key_values = 0;                // with token slices: between the first slice's F and its B
  auto operator<=>(const InFlight&) const = default;
};

/// Of each stage of a pipeline rank, ascending, at one moment.
using StagesInFlight = std::vector<InFlight>;

/// By pipeline rank, the moments of the phase's schedule at which most is held, on any of its replicas: whatever the
/// stages keep, the most is at one of them, and none has at most as much of everything as another.
/// `first_trainable_stage`: those before it hold nothing.
std::vector<std::vector<StagesInFlight>> most_in_flight(const Phase& phase, int first_trainable_stage);

/// The stages of one pipeline rank together. `stages`: each with what it keeps of one micro-batch (until_backward,
/// until_weights, key_values).
RankMemory together(std::span<const RankMemory> stages, std::span<const StagesInFlight> moments);

/// Tokens of the largest micro-batch in a phase of this layout, on data like `workload` in random order: the longest
/// piece of the longest mini-batch (plan/batch.h), or of a node's part of it where each replica has its own node's
/// samples. 0 where it is not known how the lengths spread.
std::int64_t largest_micro_batch_tokens(const ParallelLayout& layout, int num_micro_batches, int global_batch_size,
                                        int num_nodes, const Workload& workload);

/// A micro-batch that there is memory for.
struct MicroBatchSize {
  int samples = 0;
  int tokens = 0;  // per sample, on average
  std::int64_t all_tokens() const { return std::int64_t{samples} * tokens; }
};

/// The largest of a phase: as many samples as where all are equally long, with largest_micro_batch_tokens together,
/// rounded up, but at least `tokens` each. Of a mini-batch as planned split_by_length makes none with more tokens (but,
/// of short samples, one with more of them).
MicroBatchSize planned_micro_batch(const Phase& phase, int global_batch_size);

/// What any stage needs in a phase like `unpartitioned`, whose partition is not looked at. The profile gives model and
/// type of frozen layers.
class StageMemory {
 public:
  StageMemory(const Phase& unpartitioned, const Profile& profile, Optimizer optimizer, DType dtype);
  /// With nothing in flight. `layers`: costs of all layers on the stage's device, for planned_micro_batch. Throws
  /// InvalidInput where the schedule splits the backward and they do not say what that keeps.
  ///
  /// With token slices an action's transients are the longest slice's share. Keys and values are kept once, for the
  /// whole micro-batch: those of layers that train are key_values; the workspace has those of frozen layers, until the
  /// last slice's forward, and the gradients that later slices leave, each of one micro-batch.
  ///
  /// `hands_on`: as hands_on_at_once; then no output waits for its receiver, as it may elsewhere of a frozen stage.
  RankMemory of(LayerRange stage, std::span<const LayerCost> layers, bool hands_on = false) const;

  /// The same of a stage that grows layer by layer, each in constant time: for sweeps over where it may end.
  class Growing {
   public:
    /// Without layers yet. What it refers to outlives it.
    Growing(const StageMemory& memory, std::span<const LayerCost> layers, int begin)
        : of_(memory), layers_(layers), begin_(begin), end_(begin) {}
    /// The next layer.
    void add();
    RankMemory memory(bool hands_on = false) const;

   private:
    struct SavedActivations {
      Bytes kept = 0;            // from forward until backward
      Bytes until_weights = 0;   // from I until W
      Bytes computed_again = 0;  // most that lives in a backward beside what was kept for it
    };
    /// 0 in front of the first layer: token ids are next to nothing.
    Bytes output_bytes_of(int layer) const { return layer < 0 ? 0 : layers_[layer].output_activation_bytes; }
    void add_saved_activations(int layer);
    /// With the last segment, which ends with layer `last`: computed again, it keeps the next one's input.
    SavedActivations with_last_segment(int last, Bytes next_input) const;
    /// Makes what a stage needs of whole samples that of token slices.
    void cut_into_slices(RankMemory& memory) const;

    const StageMemory& of_;
    std::span<const LayerCost> layers_;
    int begin_, end_;
    RankMemory lasting_;
    Bytes transient_ = 0;
    SavedActivations closed_;              // of all segments but the last
    Bytes segment_ = 0, split_ = 0;        // what the last one saves, and leaves for W
    Bytes keys_and_values_ = 0;            // of attention layers that train
    Bytes keys_and_values_beside_ = 0;     // of those of them that are not computed again
    Bytes keys_and_values_in_action_ = 0;  // in the workspace
  };

 private:
  /// Of an activation between layers, of which a rank has `output`: that of all tensor ranks' tokens.
  Bytes of_all_tokens(Bytes output) const;

  const Phase& unpartitioned_;
  const Model& model_;
  Bytes kept_bytes_;                            // per weight
  Bytes rounded_bytes_, frozen_rounded_bytes_;  // per weight: the copy that bfloat16 computes with
  int moments_;
  Bytes exchange_;
  std::vector<bool> recomputed_;  // by layer
  bool splits_backward_;
  bool keeps_older_weights_;
};

/// What either end of a pipeline gets from the other in an iteration: the gradients of tied parameters, until they are
/// untied; 0 without tied embeddings, or where both ends are on one rank. Of a table that every tensor rank has whole,
/// all of it: where more of the embedding is whole than what is not tied.
Bytes tied_gradient_bytes(const Phase& phase, const Model& model, DType dtype);

/// What the replicas of a layer add in an iteration, each: rows of the embedding that no token of the mini-batch looks
/// up have no gradients.
Bytes reduced_gradient_bytes(const Phase& phase, const Model& model, int layer, int global_batch_size, DType dtype);

/// Each stage of `phase` by itself, with nothing in flight.
std::vector<RankMemory> memory_of_stages(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                         const Cluster& cluster);

/// Memory of each pipeline rank of `phase` with the profile's bytes, for planned_micro_batch.
std::vector<RankMemory> memory_of(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                  const Cluster& cluster);

/// Live bytes from `at_ns` on: while `action` runs, or since it has ended.
struct MemoryChange {
  Nanoseconds at_ns = 0;
  Bytes bytes = 0;
  Action action;
  bool ended = false;
  bool operator==(const MemoryChange&) const = default;
};

/// One rank's memory over one iteration, in the order of time: `peak` is what memory_of says of its pipeline rank,
/// `stages` what memory_of_stages says of the phase, `timeline` the simulated iteration. A micro-batch's activations
/// live from the begin of its F to the end of its B, or of its I, which leaves what W needs until W has ended, and an
/// action's workspace while it runs, an exchange while gradients are reduced; the rest lives throughout. Empty for a
/// rank that computes nothing. `slice_tokens`: of the longest sample, with token slices (token_slices.h).
std::vector<MemoryChange> memory_over_time(const Trace& timeline, int rank, const RankMemory& peak,
                                           std::span<const RankMemory> stages,
                                           std::span<const std::int64_t> slice_tokens = {});

/// Where it is largest, the first time. Requires changes.
MemoryChange largest(const std::vector<MemoryChange>& changes);

/// "stage 0 needs 470 MiB (weights 87 MiB, ...), rank 0 has 384 MiB": empty if every rank fits.
std::string what_does_not_fit(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster);

}  // namespace frostpipe
