#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// A plan of PPipe's artifact, and the problem that it solves.
struct PPipePlan {
  std::string name;  // of its file, without what names the planner
  ServingMethod method = ServingMethod::ppipe;
  std::string classes;  // "L4-P4"
  std::string cluster;  // "L4-P4, 25-75"
  std::string models;   // "colorization-v2, googlenet-v3-pytorch, repvgg-b3"
  ServingProblem problem;
  ServingPlan shipped;  // without what a simulation does not look at
  double seconds = 0;   // that its solver took
};

/// The least throughput per weight.
double objective_of(const PPipePlan& plan);

/// The plans FOLDER/plans/maf19/*.json whose names end with _v4 (PPipe), _bl (NP) or _dart-r, in order of their names;
/// models' tables as import_ppipe_model reads them. A batch is built at the throughput that the plan's file names.
/// Throws InvalidInput that names the file.
std::vector<PPipePlan> load_ppipe_plans(const std::filesystem::path& folder);

/// Three models on one cluster, and how PPipe's artifact serves them by each of its planners.
struct PPipeInstance {
  std::string cluster;          // "L4-P4"
  ServingPlan np, dart, ppipe;  // without pipelines, DART-r, PPipe
};

/// The same plans put together by name. Throws InvalidInput where one of the three is missing.
std::vector<PPipeInstance> ppipe_instances(const std::vector<PPipePlan>& plans);

}  // namespace frostpipe
