#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "plan/freeze.h"
#include "plan/plan.h"
#include "planner/pins.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

struct PlanOptions {
  /// data-parallel | static | exact | equal-split | pipedream | pipedream-2bw | ptd-p | timelyfreeze | pipetransformer
  /// | freeze-only | pipetransformer-published | pipetransformer-without-replicas
  std::string method = "pipetransformer";
  int global_batch_size = 64;
  int num_steps = 0;
  int tokens = 0;  // per sample, on average; 0 = as the profile's workload
  std::string optimizer = "adamw";
  std::string dtype = "float32";
  std::string partitioner = "exact";  // exact | pipetransformer-greedy
  std::string schedule;               // the only one to use; empty = the best
  int pipeline_parallel_size = 0;     // at the start; 0 = the best
  int tensor_parallel_size = 1;
  bool any_tensor_parallel_size = true;  // method auto may take another that was measured
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

/// How many pipelines of this length there are side by side.
int replicas_of_pipelines(const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size);

/// Throws InvalidInput for options, clusters and profiles that mean nothing: no samples, no steps, no device, no
/// backward times, pins of layers that are not there.
void require_meaningful(const Profile& profile, const Cluster& cluster, const PlanOptions& options);

/// Whether ranks that a shorter pipeline frees become replicas of it (AutoDP); else they stay idle.
bool replicates(const PlanOptions& options);

/// The names that make_plan knows.
const std::vector<std::string>& plan_methods();

/// How many of the cluster's devices may be used.
int devices_to_use(const Cluster& cluster, const PlanOptions& options);

/// No plan fits; the reason names the binding constraint ("p = 1: stage 0 needs 470 MiB, rank 0 has 384 MiB").
struct Infeasible {
  std::string reason;
  bool lacks_memory = false;  // a higher limit, or more ranks that share the model, may help
  /// Appends another reason, after "; "; memory is lacking if it lacks for either.
  void add(const Infeasible& other);
};
using PlanResult = std::variant<TrainingPlan, Infeasible>;

struct ReplanRequest;
struct ReplanResult;
using ReplanObserver = std::function<void(const ReplanRequest&, const ReplanResult&)>;

/// Makes a plan by the named method. Every iteration time is the simulator's.
///
/// - data-parallel: p = 1, d = world.
/// - static: the best of p x d = world, p >= 2 where the cluster has two ranks, nothing frozen; p = 1 is the
/// data-parallel method's.
/// - exact: over p x d = world, schedules, micro-batches and all partitions that fit, the one with the least
/// StageBound; exact for that objective.
/// - equal-split, pipedream, pipedream-2bw, ptd-p: published_layouts.h. timelyfreeze: the static plan, for
/// timely_freeze.h.
/// - pipetransformer: the least predicted time of the whole run along the forecast of freezes (RunPlanner): with which
/// layout to start, at which freeze to change it, to
///   which (AutoPipe shortens pipelines, AutoDP makes freed ranks replicas), and where the activation cache pays; data
///   parallelism throughout if that is fastest.
/// - freeze-only: the static plan throughout, freezing as forecast.
/// - pipetransformer-published: starts over all ranks; GPipe, the greedy partition with the frozen layers on the first
/// device, the pipeline's length by parameters, no
///   cache (paper_auto_pipe.h).
/// - pipetransformer-without-replicas: as pipetransformer, but starts over all ranks, and those that are freed stay
/// idle: what AutoPipe and AutoCache give alone.
///
/// Provenance holds model and version; paths and fingerprints of files are the caller's. Throws InvalidInput for
/// options that mean nothing (unknown method, no samples, no length) and for costs that were not measured.
///
/// `observe` is told what was considered at each freeze that replan() answered.
PlanResult make_plan(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                     const ReplanObserver& observe = {});

/// A plan of these phases: what it holds beside them is from `options`.
TrainingPlan plan_of(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                     std::vector<Phase> phases);

/// Best phase with a given pipeline length (d = world / p, rounded down) and frozen prefix, from step 0, with its
/// prediction. Also used when re-planning during a run.
///
/// Candidates: schedules GPipe and 1F1B, every m up to 32 and beyond that the least m for each micro-batch size, each
/// with the partition that has the least StageBound among all that fit (exact, stage_bound.h); those whose bound is
/// above the best time are not simulated. The smallest simulated iteration time wins, ties go to 1F1B and to fewer
/// micro-batches; the cuts of the two fastest are then shifted, one or several neighbouring ones by one layer, while
/// the simulator finds that faster (not beyond 2,048 micro-batches over all stages). At least as fast as every
/// candidate, but not exact over all partitions: on 1,000 random models of 4 and 6 layers on 1, 2 and 4 ranks the best
/// of its lengths was the best of all layouts and partitions every time. Candidates whose micro-batch size was not
/// measured are left out; if that is every one, throws what cost_of throws. The published greedy partition is taken as
/// it is. Infeasible names what the smallest micro-batches lack, or the empty stage that the greedy partitioner left.
std::variant<Phase, Infeasible> best_phase(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                           int pipeline_parallel_size, int first_trainable_layer,
                                           const CacheUse& cache = {});

/// The same layout, partition and schedule with more layers frozen from `from_step` on, with its prediction; Infeasible
/// if a rank lacks memory.
std::variant<Phase, Infeasible> carry_on(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                         const Phase& current, int first_trainable_layer, int from_step);

/// The published rule: the pipeline has the length that paper_pipeline_length gives by parameters, whether or not that
/// is faster or fits.
std::variant<Phase, Infeasible> next_published_phase(const Profile& profile, const Cluster& cluster,
                                                     const PlanOptions& options, const Phase& current,
                                                     int first_trainable_layer, int from_step);

}  // namespace frostpipe
