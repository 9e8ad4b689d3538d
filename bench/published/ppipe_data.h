#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "planner/serving/make_serving_plan.h"

namespace frostpipe {

/// A plan of PPipe's artifact, and the problem that it solves.
struct PPipePlan {
  ServingMethod method = ServingMethod::ppipe;
  std::string cluster;  // "L4-P4, 25-75"
  std::string models;   // "colorization-v2, googlenet-v3-pytorch, repvgg-b3"
  ServingProblem problem;
  std::vector<double> requests_per_second;  // of each model
  double seconds = 0;                       // that its solver took
};

/// The least throughput per weight.
double objective_of(const PPipePlan& plan);

/// The plans of FOLDER/plans/*/*.json whose names end with _v4 (PPipe), _bl (NP) or _dart-r, in order of their paths;
/// models' tables as import_ppipe_model reads them. A batch is built at the throughput that the plan's file names.
/// Throws InvalidInput that names the file.
std::vector<PPipePlan> load_ppipe_plans(const std::filesystem::path& folder);

}  // namespace frostpipe
