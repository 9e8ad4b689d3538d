#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "plan/freeze.h"
#include "plan/layout.h"
#include "plan/partition.h"
#include "plan/plan_method.h"
#include "plan/recompute.h"
#include "plan/schedule.h"
#include "profiles/cluster.h"
#include "profiles/model.h"
#include "profiles/profile.h"

namespace frostpipe {

/// What the planner expects of a phase, by the simulator.
struct PhasePrediction {
  Nanoseconds iteration_ns = 0;
  /// Of the change into this phase; 0 for the first.
  Nanoseconds transformation_ns = 0;
  std::vector<Bytes> peak_memory_bytes;  // per rank of the world; 0 for idle ranks
  bool operator==(const PhasePrediction&) const = default;
};

/// A fraction of the samples whose cached activation is the input of `layer`.
struct CacheFound {
  int layer = 0;
  double fraction = 0;
  bool operator==(const CacheFound&) const = default;
};

/// How a phase uses its node's activation cache, which keeps activations at the frozen boundary (the input of
/// Phase::first_trainable_layer) by sample. An entry is used by stage 0 alone, and only where it was stored at or
/// before the end of stage 0's layers; it is written by the stage that holds the layer before the boundary.
struct CacheUse {
  bool on = false;
  /// What is expected to be found, by layer ascending: at the boundary (a hit) or at an earlier one, from which only
  /// the layers between are computed (re-basing). Samples that are not found are computed from the start. Nothing
  /// found: the fill part of a run; all found at the boundary: the hit part.
  std::vector<CacheFound> found;
  bool operator==(const CacheUse&) const = default;
};

/// A stretch of the run with one layout; valid from optimizer step `from_step` until the next phase.
struct Phase {
  int from_step = 0;
  /// Layers before it are frozen. 0 = nothing frozen; the head always trains.
  int first_trainable_layer = 0;
  ParallelLayout layout;
  Partition partition;        // one range per stage; plan/stages.h says which rank a stage is on
  int num_micro_batches = 1;  // per replica
  std::string schedule = "1F1B";
  /// Stages per pipeline rank, with rows the most of one; more than one where the schedule has it.
  int virtual_stages = 1;
  /// Tokens of a sample in each token slice, in order, where the schedule has slices (TeraPipe, Seq1F1B); empty = whole
  /// samples. plan/token_slices.h says what a slice has of a sample.
  std::vector<int> token_slices{};
  /// A schedule that no builder makes, which then only has a name in `schedule`: plan/schedule_rows.h. Empty = by name.
  std::vector<std::string> schedule_rows{};
  /// Of the rows, set with them; empty without rows.
  std::vector<int> pipeline_rank_of_stage{};
  /// Mean tokens per sample that the prediction holds for: micro-batches are packed.
  int tokens = 0;
  /// Tokens of the longest sample of the run; 0 = as `tokens`.
  int longest_tokens = 0;
  /// Tokens of the largest micro-batch, which memory is planned for; 0 = as if all its samples were the longest.
  std::int64_t largest_micro_batch_tokens = 0;
  CacheUse cache;
  Recompute recompute = std::nullopt;
  /// The plan of operators that a net trains by (operators/plan/operator_plan.h), as its file has it. Nothing in plan/
  /// reads it. Its devices are the ranks in their order, and the fields above describe one stage of the whole net.
  /// Empty: a pipeline.
  std::string operator_plan{};
  PhasePrediction predicted;
  bool operator==(const Phase&) const = default;
};

/// Where a plan comes from. Paths are relative to the plan's own folder where possible.
struct Provenance {
  std::string model_name;
  std::string model_fingerprint;  // structure only: fingerprint(Model)
  std::string model_path;
  std::string profile_path;
  std::string profile_fingerprint;  // of the file's bytes
  std::string cluster_path;
  std::string cluster_fingerprint;
  std::string version;  // of frostpipe
  bool operator==(const Provenance&) const = default;
};

/// Of the samples found in a cache, those at `layer`.
double fraction_at(const std::vector<CacheFound>& found, int layer);

/// Of the samples, those whose frozen `layer` stage 0 computes if its layers end at `reach`.
double computed_fraction(const CacheUse& cache, int layer, int reach);

/// Of a phase that starts to train at `boundary`: "-", "fill", "hit", or "57 % hits, 40 % from before".
std::string to_string(const CacheUse& cache, int boundary);

/// What a node's activation cache may hold.
struct CacheLimits {
  DType dtype = DType::kFloat32;  // of the stored values; or bfloat16
  Bytes memory_bytes = 0;         // host memory, shared by the node's ranks
  Bytes disk_bytes = 0;           // beyond that
  bool operator==(const CacheLimits&) const = default;
};

/// What shall be done: a run as phases. One phase with nothing frozen is ordinary pipeline training.
struct TrainingPlan {
  PlanMethod method = PlanMethod::static_pipeline;
  int world_size = 1;
  /// That each rank computes with, on CPUs.
  int threads_per_rank = 1;
  int global_batch_size = 1;
  /// Optimizer steps of the run, of all phases together.
  int num_steps = 0;
  /// The number of epochs of the profile's data that num_steps was asked for as; 0 = it was given in steps, for any
  /// data.
  int epochs = 0;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  /// That frozen layers compute in, as the profile measured them: bfloat16. None: as the others.
  std::optional<DType> frozen_dtype = std::nullopt;
  /// It also cuts the layers where the run is planned again.
  Partitioner partitioner = Partitioner::exact;
  /// The cluster's memory limits hold (and are enforced by the executor).
  bool memory_limited = true;
  CacheLimits cache;
  /// The data that it was planned for, as the profile knows it.
  std::optional<Workload> workload = std::nullopt;
  std::vector<Phase> phases;
  Provenance provenance;
  bool operator==(const TrainingPlan&) const = default;
};

/// What all optimizer steps of a run have in common, and what costs and memory follow from beside the phase.
struct StepSettings {
  int global_batch_size = 1;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
};
StepSettings step_settings(const TrainingPlan& plan);

/// What a phase's schedule is built of.
ScheduleShape shape_of(const Phase& phase);

/// 1 where an iteration computes with the weights from before the last update (PipeDream-2BW), else 0. Iteration t of a
/// phase that begins at t0 uses the weights W_max(t-1, t0), forward and backward on every stage. Its gradients, clipped
/// by their own norm, update the newest weights: W_t+1 = update(W_t, g_t). So a change of phase begins with equal
/// versions, unless keeps_weight_versions (reconfiguration.h).
int weight_delay(const Phase& phase);

/// The lowered schedule of a phase. Where coordinates of its layout are vacant, replicas are written out
/// (plan/reroute.h).
Schedule schedule_of(const Phase& phase);

/// Index of the phase that `step` belongs to.
int phase_at(const TrainingPlan& plan, int step);

/// Throws InvalidInput ("SOURCE: phases[1].partition: ...") unless phases start at 0 and ascend, frozen layers never
/// shrink, partitions cover the model, layouts fit the world and schedules are known and can have the phase's shape.
void validate(const TrainingPlan& plan, const Model& model, std::string_view source);

/// The same of a run as it was: where it was continued with another plan, frozen layers may train again.
void validate_executed(const TrainingPlan& plan, const Model& model, std::string_view source);

/// Whether both cut the model and order its work alike, whatever is frozen or cached.
bool have_same_pipeline(const Phase& one, const Phase& other);

/// Throws InvalidInput if the plan was made for another model structure.
void require_same_model(const TrainingPlan& plan, const Model& model, std::string_view source);

/// Envelope "frostpipe.plan", of version 2 where a phase has several stages per rank, token slices, rows of a schedule,
/// sequence parallelism or vacant coordinates, which version 1 does not know, else of 1.
std::string to_json(const TrainingPlan& plan);
TrainingPlan plan_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
