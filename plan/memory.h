#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/range_maximum.h"
#include "plan/plan.h"
#include "plan/trace.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Live tensor bytes of one rank at its peak, by part.
struct RankMemory {
  Bytes weights = 0;
  Bytes older_weights = 0;      // second version of trainable layers' weights, where updates are delayed
  Bytes gradients = 0;          // trainable layers only
  Bytes optimizer_state = 0;    // trainable layers only: two moments for AdamW, none for SGD
  Bytes saved_activations = 0;  // from forward until backward, peak over the schedule
  Bytes workspace = 0;          // largest transient inside one action, with its boundary activations
  Bytes exchange = 0;           // tied gradients from the other end, with the activations in flight at that time
  Bytes cache = 0;       // what stage 0 reads ahead from the activation cache: its replica's part of two mini-batches
  Bytes sent_ahead = 0;  // a wholly frozen stage's outputs of one iteration, by which it may be ahead of its receiver
  /// Only for a single stage, per micro-batch: bytes that live from F to B (or to I), and from I to W. With token
  /// slices, until_backward is for one token of each sample.
  Bytes until_backward = 0, until_weights = 0;
  /// With token slices: keys and values of one micro-batch, which live from the first slice's F to the first slice's B.
  Bytes key_values = 0;
  Bytes total() const { return lasting() + sent_ahead + std::max(saved_activations + workspace, exchange); }
  Bytes lasting() const { return weights + older_weights + gradients + optimizer_state + cache; }
  /// Returns the part that never decreases as a stage gets more layers.
  Bytes rising() const { return lasting() + saved_activations; }
  bool operator==(const RankMemory&) const = default;
};

/// Returns the peak number of micro-batches in flight per pipeline rank: the saved activations of one micro-batch live
/// from its F to its B. The unit is one micro-batch through all layers of a rank, so one of v stages on a rank counts
/// 1/v, and one of n token slices 1/n. Frozen stages save nothing. If the backward is split, I leaves
/// `weight_gradient_share` of the activations for W.
std::vector<double> peak_in_flight(const Schedule& schedule, double weight_gradient_share = 1);

/// The micro-batches for which one stage holds activations at one moment.
struct InFlight {
  std::int64_t before_backward = 0;  // between F and B (or I); with token slices, in tokens of the longest sample
  int before_weights = 0;            // between I and W
  int key_values = 0;                // with token slices: between the first slice's F and its B
  auto operator<=>(const InFlight&) const = default;
};

/// One entry per stage of a pipeline rank, ascending, all at one moment.
using StagesInFlight = std::vector<InFlight>;

/// Returns, for each pipeline rank, the moments of the phase's schedule at which its memory can peak on any replica:
/// whatever the stages save, the peak is at one of these moments. Moments that hold at most what another one holds, or
/// the mean of two others, are left out. Stages before `first_trainable_stage` hold nothing.
std::vector<std::vector<StagesInFlight>> peaks_in_flight(const Phase& phase, int first_trainable_stage);

/// Returns the peak memory of a pipeline rank with these stages, at the worst of `moments`. Each of `stages` says what
/// it holds per micro-batch (until_backward, until_weights, key_values).
RankMemory together(std::span<const RankMemory> stages, std::span<const StagesInFlight> moments);

/// Returns the tokens of the largest micro-batch in a phase of this layout, on data like `workload` in random order:
/// the longest piece of the longest mini-batch (plan/batch.h) or, if the replicas can be divided evenly among
/// `num_nodes` nodes, of a node's part of it, since each replica then has its own node's samples. The result is 0 if
/// the deviation of lengths is unknown.
std::int64_t largest_micro_batch_tokens(const ParallelLayout& layout, int num_micro_batches, int global_batch_size,
                                        int num_nodes, const Workload& workload);

/// The size of a micro-batch that memory is planned for.
struct MicroBatchSize {
  int samples = 0;
  int tokens = 0;  // mean per sample
  std::int64_t all_tokens() const { return std::int64_t{samples} * tokens; }
};

/// Returns the largest micro-batch of a phase. It has as many samples as if all were equally long, and
/// `largest_micro_batch_tokens` tokens in all, rounded up, but per sample at least `tokens` and otherwise at most
/// `longest_tokens`, which is also taken if largest_micro_batch_tokens is 0. In a mini-batch as planned,
/// split_by_length makes no micro-batch of more tokens (one of short samples may have more samples).
MicroBatchSize planned_micro_batch(const Phase& phase, int global_batch_size);

/// Computes the memory of any stage in a phase like `unpartitioned`, whose partition is ignored. The profile provides
/// the model and the type of frozen layers.
class StageMemory {
 public:
  /// Keeps references to the phase and to the profile's model.
  StageMemory(const Phase& unpartitioned, const Profile& profile, Optimizer optimizer, DType dtype);
  /// Computes the memory of stages within a range of layers on devices of one type, each stage in constant time from
  /// sums and maxima over its layers.
  class OnDevice {
   public:
    /// `layers` are the costs of all layers on the device for planned_micro_batch, though only those of `within` and of
    /// the layer before it are used (and with a cache that of the last frozen layer). Keeps references to `memory` and
    /// `layers`. Takes O(n log n) time for n layers. Throws InvalidInput if the schedule splits the backward and the
    /// costs do not say what W needs.
    OnDevice(const StageMemory& memory, std::span<const LayerCost> layers, LayerRange within);
    /// Returns the memory of a stage with nothing in flight.
    ///
    /// With token slices the workspace counts the longest slice's share of an action's transients. Keys and values are
    /// kept once, for the whole micro-batch: those of trainable layers are key_values. The workspace contains those of
    /// frozen layers, until the last slice's forward, and the gradients that later slices leave, each for one
    /// micro-batch.
    ///
    /// `hands_on` is the stage's hands_on_at_once (plan/stages.h): if true, none of its outputs waits for its receiver,
    /// as a frozen stage's otherwise may.
    RankMemory of(LayerRange stage, bool hands_on = false) const;

   private:
    /// Sums over the layers of `within` before one of them.
    struct Sums {
      Bytes versions = 0, weights = 0;      // LayerMemory's
      Bytes saved = 0;                      // activations of trainable layers
      Bytes split = 0;                      // what I leaves of them for W
      Bytes keys_and_values = 0;            // of attention layers that train
      Bytes keys_and_values_beside = 0;     // of those that are not recomputed
      Bytes keys_and_values_in_action = 0;  // counted in the workspace
      int segment = 0;                      // the number of recompute segments that begin before this layer
    };
    /// A recompute segment of trainable layers, as if no stage began or ended inside it.
    struct Segment {
      int begin = 0;
      Bytes kept_before = 0;  // sum of what earlier segments keep from forward until backward
      Bytes left_before = 0;  // sum of what I leaves for W beyond that; it may be negative
    };
    /// The bytes that a stage saves.
    struct SavedActivations {
      Bytes kept = 0;            // from forward until backward
      Bytes until_weights = 0;   // from I until W
      Bytes computed_again = 0;  // most that lives in a backward beyond what was saved
      /// Adds the next segment, of layers that save `saved` bytes and leave `split` for W. If it is recomputed, it only
      /// keeps `next_input`, the input of the segment after it.
      void add_segment(Bytes saved, Bytes split, bool recomputed, Bytes next_input, bool splits_backward);
    };
    const Sums& before(int layer) const { return sums_[layer - first_]; }
    /// Returns 0 for layer -1, the model's input: the bytes of token ids are negligible.
    Bytes output_bytes_of(int layer) const { return layer < 0 ? 0 : layers_[layer].output_activation_bytes; }
    /// `begin` is the stage's first trainable layer.
    SavedActivations saved_activations(int begin, int end) const;
    /// Converts the memory for whole samples to that for token slices.
    void cut_into_slices(RankMemory& memory, LayerRange stage) const;

    const StageMemory& of_;
    std::span<const LayerCost> layers_;
    int first_;
    std::vector<Sums> sums_;
    RangeMaximum transients_;
    std::vector<Segment> segments_;  // the last element has the sums over all segments
    RangeMaximum again_;             // of a segment: what it computes again, less left_before of the next one
  };

  /// Returns the memory of one stage, as OnDevice does.
  RankMemory of(LayerRange stage, std::span<const LayerCost> layers, bool hands_on = false) const {
    return OnDevice(*this, layers, stage).of(stage, hands_on);
  }

 private:
  /// The memory that a layer adds to every stage that contains it.
  struct LayerMemory {
    Bytes weights = 0, version = 0;  // of one tensor rank: as stored, and with the rounded copy for computing
    bool trains = false, recomputed = false, has_attention = false;
    bool joins_segment = false;  // whether it belongs to the recompute segment of the layer before it
  };

  /// Returns the bytes of an activation between layers for the tokens of all tensor ranks together, if one rank has
  /// `output` bytes of it.
  Bytes of_all_tokens(Bytes output) const;

  const Phase& unpartitioned_;
  const Model& model_;
  Bytes kept_bytes_;                            // per weight, as stored
  Bytes rounded_bytes_, frozen_rounded_bytes_;  // per weight: the bfloat16 copy for computing; 0 = none
  int moments_;
  Bytes exchange_;
  std::vector<LayerMemory> layers_;
  bool splits_backward_;
  bool keeps_older_weights_;
};

/// Returns the bytes of the gradients of tied parameters that either end of a pipeline receives from the other in an
/// iteration: 0 without tied embeddings, once they are untied by freezing, or if both ends are on one rank. A table
/// that every tensor rank holds whole counts in full.
Bytes tied_gradient_bytes(const Phase& phase, const Model& model, DType dtype);

/// Returns the bytes that each replica of a layer contributes to the all-reduce of an iteration. Rows of the embedding
/// that no token of the mini-batch uses have no gradients. Experts that replicas divide among them are not counted.
Bytes reduced_gradient_bytes(const Phase& phase, const Model& model, int layer, int global_batch_size, DType dtype);

/// Returns the memory of each stage of `phase` by itself, with nothing in flight, on the device type of its first
/// replica.
std::vector<RankMemory> memory_of_stages(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                         const Cluster& cluster);

/// Returns the peak memory of each pipeline rank of `phase` by the profile's measurements, with the micro-batches of
/// planned_micro_batch.
std::vector<RankMemory> memory_of(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                  const Cluster& cluster);

/// The live bytes from `at_ns` on: while `action` runs or, if `ended`, after it.
struct MemoryChange {
  Nanoseconds at_ns = 0;
  Bytes bytes = 0;
  Action action;
  bool ended = false;
  bool operator==(const MemoryChange&) const = default;
};

/// Returns the memory of one rank over one iteration, in order of time. `peak` comes from memory_of for its pipeline
/// rank, `stages` from memory_of_stages, `timeline` is the simulated iteration, whose spans are in ascending order of
/// ranks. A micro-batch's activations live from the start of its F to the end of its B, or of its I, which leaves what
/// W needs until W has ended. An action's workspace lives while it runs, an exchange while gradients are reduced, and
/// the rest throughout. The result is empty for a rank that computes nothing. With token slices, `slice_tokens` are the
/// tokens of each slice of the longest sample (token_slices.h).
std::vector<MemoryChange> memory_over_time(const Trace& timeline, int rank, const RankMemory& peak,
                                           std::span<const RankMemory> stages,
                                           std::span<const std::int64_t> slice_tokens = {});

/// Returns the first change with the largest bytes. `changes` must not be empty.
MemoryChange largest(const std::vector<MemoryChange>& changes);

/// Returns "stage 0 needs 470 MiB (weights 87 MiB, ...), rank 0 has 384 MiB", or "" if every rank fits.
std::string what_does_not_fit(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster);

}  // namespace frostpipe
