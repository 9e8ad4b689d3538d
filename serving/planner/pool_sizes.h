#pragma once
#include <optional>
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/planner/pipeline_candidates.h"

namespace frostpipe {

/// The numbers of devices, and the models' candidates and requirements.
struct PoolProblem {
  struct OfModel {
    double weight = 1;
    double required_requests_per_second = 0;  // for objective `cost`
    std::vector<CandidatePipeline> candidates;
  };
  std::vector<int> num_devices;
  std::vector<double> prices;  // per class; for objective `cost`
  ServingObjective objective = ServingObjective::throughput;
  int max_partitions = 2;
  std::vector<OfModel> models;
};

/// A candidate with the sizes of its pools.
struct SizedPipeline {
  int candidate = 0;
  std::vector<int> sizes;  // numbers of virtual devices
  bool operator==(const SizedPipeline&) const = default;
};

struct PoolSizes {
  std::vector<std::vector<SizedPipeline>> pipelines;  // per model
  double value = 0;                                   // value of the objective
  double bound = 0;                                   // no sizes have a better value
};

/// Returns the throughput of the slowest pool.
double requests_per_second(const CandidatePipeline& candidate, const std::vector<int>& sizes);

/// Returns the devices of a class that one model's pipelines use: the sum for each position, rounded up.
int devices_of(const std::vector<SizedPipeline>& pipelines, const std::vector<CandidatePipeline>& candidates,
               int device_class);

/// Returns the best sizes, by a mixed-integer linear program (PPipe, appendix A.2, enumerated). A model has at most one
/// pipeline for each sequence of max_partitions classes; a shorter pipeline can stand for any sequence that it begins.
/// Returns nothing if no sizes meet the requirements (cost), or if a model has no candidate or the devices are too few
/// for all models at once. Exact to a relative 10^-5, or as the bound says if the search reached its limits.
std::optional<PoolSizes> size_pools(const PoolProblem& problem);

/// Returns the best sizes if every model has one pipeline, from which size_pools() starts.
std::optional<PoolSizes> size_single_pipelines(const PoolProblem& problem);

}  // namespace frostpipe
