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

/// What a planner is asked for.
struct PlanOptions {
  PlanMethod method = PlanMethod::pipetransformer;
  int global_batch_size = 64;
  int num_steps = 0;
  int tokens = 0;  // per sample, on average; 0 = as the profile's workload
  Optimizer optimizer = Optimizer::kAdamW;
  DType dtype = DType::kFloat32;
  Partitioner partitioner = Partitioner::exact;
  std::string schedule;    // the only one to use; empty = the best
  int virtual_stages = 0;  // stages per rank; 0 = one, or the best number where the schedule has several
  int token_slices = 0;    // of each micro-batch, equal ones; 0 = 4 where the schedule has slices, or others if they
                           // are faster
  int pipeline_parallel_size = 0;  // at the start; 0 = the best
  int tensor_parallel_size = 1;
  bool any_tensor_parallel_size = true;  // method auto may take another that was measured
  bool sequence_parallel = false;        // of tensor ranks, where there are any
  int data_parallel_size = 0;            // 0 = as many replicas as the devices allow
  int num_micro_batches = 0;             // per replica; 0 = the best number
  int max_devices = 0;                   // to use, the first ones; 0 = all
  std::vector<int> placement;            // ParallelLayout::placement of every phase; empty = ranks in order
  Partition partition;         // the only one to use where there are as many stages; empty = the partitioner's
  std::vector<LayerPin> pins;  // kept by the exact partitioner in every phase
  Recompute recompute = std::nullopt;
  int steps_per_epoch = 0;  // 0 = samples do not come again: no cache
  bool use_cache = true;    // where it pays
  CacheLimits cache;
  bool ignore_memory_limit = false;
  FreezeOptions freeze;                              // forecast: the rule's cap
  std::optional<std::vector<FreezeEvent>> forecast;  // in its place; by step, empty = nothing freezes
};

/// A plan to be made; what it refers to outlives the call, or the object, that it is given to.
struct PlanningProblem {
  const Profile& profile;
  const Cluster& cluster;
  const PlanOptions& options;
};

StepSettings step_settings(const PlanOptions& options);

/// How many pipelines of this length there are side by side.
int replicas_of_pipelines(const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size);

/// Throws InvalidInput for options, clusters and profiles that mean nothing: no samples, no steps, no device, no
/// backward times, pins of layers that are not there, a schedule that needs times of a split backward, token slices of
/// a model that is not causal.
void require_meaningful(const PlanningProblem& problem);

/// Why no pipeline of this length is worth a search: too few ranks, samples or layers, or fixed choices that need
/// another length; empty if one may be. Throws InvalidInput for a length below 1.
std::string why_no_pipeline(const PlanningProblem& problem, int pipeline_parallel_size);

/// Whether a measurement of the profile has I and W.
bool knows_split_backward(const Profile& profile);

/// Throws InvalidInput where nothing in the profile knows I and W, which this schedule has.
void require_split_backward(const std::string& schedule, const Profile& profile);
/// The same for those phases whose schedule splits the backward.
void require_split_backward(const std::vector<Phase>& phases, const Profile& profile);

/// Whether ranks that a shorter pipeline frees become replicas of it (AutoDP); else they stay idle.
bool replicates(const PlanOptions& options);

/// A schedule with its stages per rank.
struct PlannedSchedule {
  std::string name;
  int virtual_stages = 1;
  bool operator==(const PlannedSchedule&) const = default;
};

/// Those to look among for a pipeline of this length, the preferred first: the one asked for, or 1F1B, GPipe and, where
/// the method may use any, all that plans may use; those that split the backward only where the profile knows I and W.
/// Of several stages per rank as many as asked for, or 2 to 4 where the model has enough layers.
std::vector<PlannedSchedule> schedules_for(const PlanningProblem& problem, int pipeline_parallel_size);

/// Whether the method leaves open which schedule, with which stages per rank.
bool may_use_any_schedule(const PlanOptions& options);

/// Whether the options ask for several stages per rank, or a schedule of them.
bool asks_for_several_stages_per_rank(const PlanOptions& options);

/// Token slices of each micro-batch with this schedule; 1: whole samples.
int token_slices_of(const PlanOptions& options, const std::string& schedule);

/// Whether it has measured token slices: tokens after others.
bool knows_slices(const Profile& profile);

/// How many of the cluster's devices may be used.
int devices_to_use(const Cluster& cluster, const PlanOptions& options);

/// Numbers of tensor ranks that were measured, of two and more with or without sequence parallelism as asked.
std::set<int> measured_tensor_sizes(const Profile& profile, bool sequence_parallel);

/// No plan fits; the reason names the binding constraint ("p = 1: stage 0 needs 470 MiB, rank 0 has 384 MiB").
struct Infeasible {
  std::string reason;
  bool lacks_memory = false;  // a higher limit, or more ranks that share the model, may help
  /// Appends another reason, after "; "; memory is lacking if it lacks for either.
  void add(const Infeasible& other);
};

}  // namespace frostpipe
