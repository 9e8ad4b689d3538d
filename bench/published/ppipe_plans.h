#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "plan/serving/serving_plan.h"

namespace frostpipe {

/// Three models on one cluster, and how PPipe's artifact serves them by each of its planners.
struct PPipeInstance {
  std::string cluster;          // "L4-P4"
  ServingPlan np, dart, ppipe;  // without pipelines, DART-r, PPipe
};

/// Every "*_bl.json", "*_dart-r.json" and "*_v4.json" of FOLDER/plans/maf19, in order of names, with the times of
/// FOLDER/block-timing-tf32: a line per block, a column per batch size, integer microseconds. Throws InvalidInput that
/// names the file.
std::vector<PPipeInstance> ppipe_instances(const std::filesystem::path& folder);

}  // namespace frostpipe
