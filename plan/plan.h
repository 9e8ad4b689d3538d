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

/// The planner's predictions for a phase, made by the simulator.
struct PhasePrediction {
  Nanoseconds iteration_ns = 0;
  /// The time of the reconfiguration into this phase; 0 for the first phase.
  Nanoseconds transformation_ns = 0;
  std::vector<Bytes> peak_memory_bytes;  // per rank of the world; 0 for idle ranks
  bool operator==(const PhasePrediction&) const = default;
};

/// The fraction of samples for which the cache holds the input of `layer`.
struct CacheFound {
  int layer = 0;
  double fraction = 0;
  bool operator==(const CacheFound&) const = default;
};

/// A phase's use of its node's activation cache, which stores per sample the activations at the frozen boundary (the
/// input of Phase::first_trainable_layer). The stage that holds the layer before the boundary writes entries. Only
/// stage 0 reads them, and only those stored at or before the end of its layers.
struct CacheUse {
  bool on = false;
  /// The fractions of samples that are expected to be found, by layer ascending: at the boundary (a hit), or at an
  /// earlier boundary, from which only the layers between are computed (re-basing). All other samples are computed from
  /// the start. The list is empty while the cache fills, and holds 1 at the boundary once all samples are found there.
  std::vector<CacheFound> found;
  bool operator==(const CacheUse&) const = default;
};

/// A stretch of the run with one layout, from optimizer step `from_step` until the next phase begins.
struct Phase {
  int from_step = 0;
  /// Layers before this one are frozen. 0 = nothing is frozen; the head always trains.
  int first_trainable_layer = 0;
  ParallelLayout layout;
  Partition partition;        // one range per stage; plan/stages.h says which rank a stage is on
  int num_micro_batches = 1;  // per replica
  std::string schedule = "1F1B";
  /// Stages per pipeline rank; with schedule_rows the most of any rank. Only some schedules allow more than one.
  int virtual_stages = 1;
  /// Tokens of a sample in each token slice, in order, for schedules with slices (TeraPipe, Seq1F1B). Empty = whole
  /// samples. See plan/token_slices.h for samples of other lengths.
  std::vector<int> token_slices{};
  /// A schedule that no builder makes (plan/schedule_rows.h); `schedule` is then only its name. Empty = built by name.
  std::vector<std::string> schedule_rows{};
  /// Pipeline rank of each stage; required with schedule_rows, empty otherwise.
  std::vector<int> pipeline_rank_of_stage{};
  /// Mean tokens per sample for which the prediction holds: micro-batches are packed.
  int tokens = 0;
  /// Tokens of the longest sample of the run; 0 = the same as `tokens`.
  int longest_tokens = 0;
  /// Tokens of the largest micro-batch, for which memory is planned; 0 = all its samples may be the longest.
  std::int64_t largest_micro_batch_tokens = 0;
  CacheUse cache;
  Recompute recompute = std::nullopt;
  /// The plan of operators that a net trains by (operators/plan/operator_plan.h), as its file writes it. Nothing in
  /// plan/ reads it. Its devices are the ranks in their order, and the fields above describe one stage of the whole
  /// net. Empty = a pipeline.
  std::string operator_plan{};
  PhasePrediction predicted;
  bool operator==(const Phase&) const = default;
};

/// The origin of a plan. Paths are relative to the plan's own folder where possible.
struct Provenance {
  std::string model_name;
  std::string model_fingerprint;  // of the structure only: fingerprint(Model)
  std::string model_path;
  std::string profile_path;
  std::string profile_fingerprint;  // of the file's bytes
  std::string cluster_path;
  std::string cluster_fingerprint;
  std::string version;  // version of frostpipe
  bool operator==(const Provenance&) const = default;
};

/// Returns the fraction found at `layer`; 0 if none.
double fraction_at(const std::vector<CacheFound>& found, int layer);

/// Returns the fraction of samples for which stage 0 computes its frozen `layer`, if its layers end at `reach`.
double computed_fraction(const CacheUse& cache, int layer, int reach);

/// Describes the cache of a phase whose first trainable layer is `boundary`: "-", "fill", "hit", or "57 % hits, 40 %
/// from before".
std::string to_string(const CacheUse& cache, int boundary);

/// The limits of a node's activation cache.
struct CacheLimits {
  DType dtype = DType::kFloat32;  // type of the stored values: float32 or bfloat16
  Bytes memory_bytes = 0;         // host memory, shared by the node's ranks
  Bytes disk_bytes = 0;           // used once memory is full
  bool operator==(const CacheLimits&) const = default;
};

/// The fraction of every memory limit that plans leave free by default. Predictions are accurate within a few per cent,
/// and exceeding a limit ends a run.
constexpr double kMemoryReserve = 0.02;

/// A training run as a sequence of phases. One phase with nothing frozen is ordinary pipeline training.
struct TrainingPlan {
  PlanMethod method = PlanMethod::static_pipeline;
  int world_size = 1;
  /// The number of threads with which each rank computes on a CPU.
  int threads_per_rank = 1;
  int global_batch_size = 1;
  /// The number of optimizer steps of the whole run.
  int num_steps = 0;
  /// The number of epochs of the profile's data from which num_steps was computed; 0 = steps were given, and any data
  /// may be used.
  int epochs = 0;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  /// Type in which frozen layers compute and were measured, if it is not `dtype`: bfloat16. None = `dtype`.
  std::optional<DType> frozen_dtype = std::nullopt;
  /// The algorithm that cuts the layers, also when the run is re-planned.
  Partitioner partitioner = Partitioner::exact;
  /// Whether the cluster's memory limits apply. If so, the executor enforces them.
  bool memory_limited = true;
  /// The fraction of every memory limit that the plan leaves free, also when the run is re-planned.
  double memory_reserve = kMemoryReserve;
  CacheLimits cache;
  /// The data that the plan was made for, as described by the profile.
  std::optional<Workload> workload = std::nullopt;
  std::vector<Phase> phases;
  Provenance provenance;
  bool operator==(const TrainingPlan&) const = default;
};

/// The settings that all optimizer steps of a run share and that, together with the phase, determine costs and memory.
struct StepSettings {
  int global_batch_size = 1;
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
};
StepSettings step_settings(const TrainingPlan& plan);

/// Returns the shape from which a phase's schedule is built.
ScheduleShape shape_of(const Phase& phase);

/// Returns 1 if an iteration computes with the weights from before the last update (PipeDream-2BW), else 0. Iteration t
/// of a phase that begins at t0 uses the weights W_max(t-1, t0), forward and backward on every stage. Its gradients,
/// clipped by their own norm, update the newest weights: W_t+1 = update(W_t, g_t). So a new phase begins with equal
/// versions, unless keeps_weight_versions (reconfiguration.h).
int weight_delay(const Phase& phase);

/// Returns the lowered schedule of a phase, in which overlapped pairs run one after the other. With vacant coordinates,
/// all replicas are written out (plan/reroute.h).
Schedule schedule_of(const Phase& phase);

/// Returns the index of the phase that `step` belongs to.
int phase_at(const TrainingPlan& plan, int step);

/// Throws InvalidInput ("SOURCE: phases[1].partition: ...") unless phases start at step 0, ascend and begin before the
/// run ends, the number of frozen layers never falls, partitions cover the model, layouts fit the world and the model's
/// expert parallelism, schedules are known and allow the phase's shape and token slices, and caches have frozen layers
/// and space.
void validate(const TrainingPlan& plan, const Model& model, std::string_view source);

/// Validates the plan of a finished run in the same way, except that frozen layers may train again: the run may have
/// been continued with another plan.
void validate_executed(const TrainingPlan& plan, const Model& model, std::string_view source);

/// Returns whether both phases have the same partition and the same order of work, whatever is frozen or cached.
bool have_same_pipeline(const Phase& one, const Phase& other);

/// Throws InvalidInput if the plan was made for another model structure.
void require_same_model(const TrainingPlan& plan, const Model& model, std::string_view source);

/// Writes the envelope "frostpipe.plan"; the inverse reads it. The version is 2 if a phase has several stages per rank,
/// token slices, schedule rows, sequence parallelism or vacant coordinates, which version 1 does not know, else 1.
std::string to_json(const TrainingPlan& plan);
TrainingPlan plan_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
