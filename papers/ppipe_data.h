#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// A plan of PPipe's artifact, and the problem that it solves.
struct PPipePlan {
  std::string name;  // name of its file without the suffix that names the planner
  ServingMethod method = ServingMethod::ppipe;
  std::string classes;  // "L4-P4"
  std::string cluster;  // "L4-P4, 25-75"
  std::string models;   // "colorization-v2, googlenet-v3-pytorch, repvgg-b3"
  ServingProblem problem;
  ServingPlan shipped;  // without fields that a simulation does not read
  double seconds = 0;   // time that its solver took
};

/// Returns the smallest throughput / weight of any model, in requests per second.
double objective_of(const PPipePlan& plan);

/// Loads the plans FOLDER/plans/maf19/*.json whose names end with _v4 (PPipe), _bl (NP) or _dart-r, in order of their
/// names; import_ppipe_model reads the models' tables. Batches are built at the throughput that the plan's file states.
/// Throws InvalidInput that names the file.
std::vector<PPipePlan> load_ppipe_plans(const std::filesystem::path& folder);

/// Three models on one cluster, with the plan of each of the artifact's planners.
struct PPipeInstance {
  std::string cluster;          // "L4-P4"
  ServingPlan np, dart, ppipe;  // by PPipe's baseline without pipelines (NP), DART-r, and PPipe
};

/// Returns the same plans, grouped by name: an instance for each plan of PPipe. Throws InvalidInput if the plan of
/// another planner is missing beside it.
std::vector<PPipeInstance> ppipe_instances(const std::vector<PPipePlan>& plans);

}  // namespace frostpipe
