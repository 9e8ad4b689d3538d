#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// A plan of PPipe's artifact, and the problem that it solves.
struct PPipePlan {
  std::string name;  // of its file, without the planner's part
  ServingMethod method = ServingMethod::ppipe;
  std::string classes;  // "L4-P4"
  std::string cluster;  // "L4-P4, 25-75"
  std::string models;   // "colorization-v2, googlenet-v3-pytorch, repvgg-b3"
  ServingProblem problem;
  ServingPlan shipped;  // without fields that a simulation does not read
  double seconds = 0;   // of its solver
};

/// The smallest throughput / weight of a model.
double objective_of(const PPipePlan& plan);

/// The plans FOLDER/plans/maf19/*.json whose names end with _v4 (PPipe), _bl (NP) or _dart-r, in order of their names;
/// import_ppipe_model reads the models' tables. A batch is built at the throughput in the plan's file. Throws
/// InvalidInput that names the file.
std::vector<PPipePlan> load_ppipe_plans(const std::filesystem::path& folder);

/// Three models on one cluster, with the plan of each of the artifact's planners.
struct PPipeInstance {
  std::string cluster;          // "L4-P4"
  ServingPlan np, dart, ppipe;  // without pipelines, DART-r, PPipe
};

/// The same plans, grouped by name. Throws InvalidInput if one of the three is missing.
std::vector<PPipeInstance> ppipe_instances(const std::vector<PPipePlan>& plans);

}  // namespace frostpipe
