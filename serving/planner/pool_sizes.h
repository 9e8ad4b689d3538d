#pragma once
#include <optional>
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/planner/pipeline_candidates.h"

namespace frostpipe {

/// How many devices of each class there are, and what is wanted of each model's candidates.
struct PoolProblem {
  struct OfModel {
    double weight = 1;
    double required_requests_per_second = 0;  // of the cheapest
    std::vector<CandidatePipeline> candidates;
  };
  std::vector<int> num_devices;
  std::vector<double> prices;  // per class; of the cheapest
  ServingObjective objective = ServingObjective::throughput;
  int most_partitions = 2;
  std::vector<OfModel> models;
};

/// A candidate with sizes of its pools.
struct SizedPipeline {
  int candidate = 0;
  std::vector<int> sizes;  // virtual devices
  bool operator==(const SizedPipeline&) const = default;
};

struct PoolSizes {
  std::vector<std::vector<SizedPipeline>> pipelines;  // of each model
  double value = 0;                                   // the objective
  double bound = 0;                                   // no sizes are beyond it
};

/// That the slowest of its pools lets through.
double requests_per_second(const CandidatePipeline& candidate, const std::vector<int>& sizes);

/// Devices of the class that the pipelines of one model use: of those at each place together, rounded up.
int devices_of(const std::vector<SizedPipeline>& pipelines, const std::vector<CandidatePipeline>& candidates,
               int device_class);

/// The best sizes, as a mixed-integer linear programme (PPipe, appendix A.2, enumerated): a model has at most one
/// pipeline for each sequence of most_partitions classes, of which a shorter pipeline takes the place of any sequence
/// that it begins. None if no sizes are good enough (cost), or a model has no candidate. Exact to within a part of
/// 10^-5, or what the bound says where the search was cut at many nodes.
std::optional<PoolSizes> size_pools(const PoolProblem& problem);

/// The best sizes where every model has one pipeline: where size_pools starts.
std::optional<PoolSizes> size_single_pipelines(const PoolProblem& problem);

}  // namespace frostpipe
