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
  double required_requests_per_second = 0;  // of the cheapest plan
  ServingProfile profile;                   // with a shared prefix: with_heads
  std::optional<SharedPrefix> shared_prefix = std::nullopt;
  /// At which its batches are built. None: what make_serving_plan finds out.
  std::optional<double> building_requests_per_second = std::nullopt;
  Provenance provenance;
};

/// What is to be decided upon. Classes have the names of the profiles' device types.
struct ServingProblem {
  std::vector<DeviceClass> classes;
  /// Of a device of each class; none = no limit.
  std::vector<std::optional<Bytes>> memory_limit_bytes;
  /// Of a message between two servers; it occupies nothing.
  Nanoseconds latency_ns = 0;
  std::vector<ModelToServe> models;
  ServingObjective objective = ServingObjective::throughput;
  ServingMargins margins;
  DType dtype = DType::kFloat32;
  int most_partitions = 2;
  /// Times of larger batches, and of smaller parts of a device, are not made use of.
  int most_requests = 8;
  int most_share = 4;  // virtual devices of a device
};

}  // namespace frostpipe
