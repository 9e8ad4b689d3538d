#pragma once
#include <optional>
#include <string>
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/serving_profile.h"

namespace frostpipe {

/// A model to be served.
struct ModelToServe {
  std::string name;
  double weight = 1;
  Nanoseconds objective_ns = 0;
  double required_requests_per_second = 0;  // for objective `cost`
  ServingProfile profile;                   // the result of with_heads() if shared_prefix is set
  std::optional<SharedPrefix> shared_prefix = std::nullopt;
  /// The rate at which its batches are built. If not set, make_serving_plan() determines it.
  std::optional<double> building_requests_per_second = std::nullopt;
  Provenance provenance;
};

/// The input of the planner. Classes have the names of the profiles' device types.
struct ServingProblem {
  std::vector<DeviceClass> classes;
  /// Memory of a device of each class; not set = no limit.
  std::vector<std::optional<Bytes>> memory_limit_bytes;
  /// Latency of a message between two servers; it occupies no network card.
  Nanoseconds latency_ns = 0;
  std::vector<ModelToServe> models;
  ServingObjective objective = ServingObjective::throughput;
  ServingMargins margins;
  DType dtype = DType::kFloat32;
  int max_partitions = 2;
  /// Larger batches, and smaller shares of a device, are not used.
  int max_requests = 8;
  int max_share = 4;  // largest number of virtual devices per device
};

}  // namespace frostpipe
