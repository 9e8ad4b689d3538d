#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/freeze.h"
#include "plan/plan.h"
#include "planner/search/pins.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// The options of a planner.
struct PlanOptions {
  PlanMethod method = PlanMethod::pipetransformer;
  int global_batch_size = 64;
  int num_steps = 0;
  int tokens = 0;  // mean per sample; 0 = that of the profile's workload
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  Partitioner partitioner = Partitioner::exact;
  std::string schedule;    // the only schedule to use; empty = the best
  int virtual_stages = 0;  // stages per rank; 0 = one, or the best number if the schedule allows several
  int token_slices = 0;    // equal slices per micro-batch; 0 = 4 for schedules with slices, or unequal if faster
  int pipeline_parallel_size = 0;  // at the start; 0 = the best
  int tensor_parallel_size = 1;
  bool any_tensor_parallel_size = true;  // method auto may use other measured sizes
  bool sequence_parallel = false;        // matters with several tensor ranks only
  int data_parallel_size = 0;            // 0 = as many replicas as the devices allow
  int num_micro_batches = 0;             // per replica; 0 = the best number
  int max_devices = 0;                   // the planner uses only the first max_devices devices; 0 = all
  std::vector<int> placement;            // ParallelLayout::placement of every phase; empty = ranks in order
  Partition partition;                   // the only partition, which also fixes the length; empty = the partitioner's
  std::vector<LayerPin> pins;            // the exact partitioner keeps them in every phase
  Recompute recompute = std::nullopt;    // none = the method's own choice: auto tries all modes, most others none
  int steps_per_epoch = 0;               // 0 = samples do not repeat, so no cache is used
  bool use_cache = true;                 // use the cache where it pays off
  CacheLimits cache;
  bool ignore_memory_limit = false;
  FreezeOptions freeze;                              // the forecast is that of its cap rule
  std::optional<std::vector<FreezeEvent>> forecast;  // replaces that forecast; ascending, empty = no freezes
};

/// The input of a planner. The objects that it refers to must outlive the call, or the object, to which it is given.
struct PlanningProblem {
  const Profile& profile;
  const Cluster& cluster;
  const PlanOptions& options;
};

StepSettings step_settings(const PlanOptions& options);

/// Returns the number of pipelines of this length side by side: the one that options fix, as many as the devices allow
/// (0 if they are too few), or 1 if the method does not replicate.
int replicas_of_pipelines(const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size);

/// Returns the number of stages of the longest pipeline for which there are enough devices, each stage on one group of
/// tensor ranks, if options fix a number of replicas with that many pipelines; at least 1.
int longest_pipeline(const Cluster& cluster, const PlanOptions& options);

/// Throws InvalidInput for meaningless options, clusters and profiles, such as: no samples, no steps, no device, no
/// backward times, pins of layers that do not exist, a schedule that splits the backward without measured times of I
/// and W, token slices of a model that is not causal, parts of the layout that the method does not leave open.
void require_meaningful(const PlanningProblem& problem);

/// Returns why no pipeline of this length is worth a search: too few ranks, samples or layers, or fixed choices that
/// need another length; empty if one may be. Throws InvalidInput for a length below 1.
std::string why_no_pipeline(const PlanningProblem& problem, int pipeline_parallel_size);

/// Returns whether the profile has a measurement of I and W.
bool knows_split_backward(const Profile& profile);

/// Throws InvalidInput if this schedule has I and W, and the profile has no measurement of them.
void require_split_backward(const std::string& schedule, const Profile& profile);
/// Does the same for all phases whose schedule splits the backward.
void require_split_backward(const std::vector<Phase>& phases, const Profile& profile);

/// Returns whether ranks that a shorter pipeline frees become replicas (AutoDP); otherwise they stay idle.
bool replicates(const PlanOptions& options);

/// A schedule and its number of stages per rank.
struct PlannedSchedule {
  std::string name;
  int virtual_stages = 1;
  bool operator==(const PlannedSchedule&) const = default;
};

/// Returns the schedules to consider for a pipeline of this length, the preferred first: the one asked for, or 1F1B,
/// GPipe and, if the method may use any, all that plans may use except those that delay weights (PipeDream-2BW). Those
/// that split the backward are included only if the profile has I and W. With several stages per rank there are as many
/// as asked for, or 2 to 4 if the model has enough layers. For length 1 it is 1F1B alone unless options ask otherwise.
std::vector<PlannedSchedule> schedules_for(const PlanningProblem& problem, int pipeline_parallel_size);

/// Returns whether the method leaves the schedule and its stages per rank open, and the partitioner is exact.
bool may_use_any_schedule(const PlanOptions& options);

/// Returns whether the options ask for several stages per rank, or for a schedule that has them.
bool asks_for_several_stages_per_rank(const PlanOptions& options);

/// Returns the number of token slices of each micro-batch with this schedule; 1 = whole samples.
int token_slices_of(const PlanOptions& options, const std::string& schedule);

/// Returns whether the profile has measured token slices (tokens after context tokens).
bool knows_slices(const Profile& profile);

/// Returns whether the planner chooses the number and the lengths of the token slices: a schedule with slices is asked
/// for by name, their number is not, and slices were measured. Bounds, which hold for equal slices of a given number,
/// do not cover such plans. A search over all schedules uses 4 equal slices.
bool cuts_slices(const PlanningProblem& problem);

/// Returns the number of the cluster's devices that may be used.
int devices_to_use(const Cluster& cluster, const PlanOptions& options);

/// Returns the tensor-parallel sizes that were measured. Measurements of two and more tensor ranks count only if they
/// have sequence parallelism as asked.
std::set<int> measured_tensor_sizes(const Profile& profile, bool sequence_parallel);

/// The result if no plan fits. The reason names the binding constraint ("p = 1: stage 0 needs 470 MiB, rank 0 has 384
/// MiB").
struct Infeasible {
  std::string reason;
  bool lacks_memory = false;  // a higher limit, or more ranks that share the model, may help
  /// Appends another reason after "; ". Memory is lacking if either lacks it.
  void add(const Infeasible& other);
};

}  // namespace frostpipe
