#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "profiles/dtype.h"

// A plan to serve models on a cluster of unequal devices under latency objectives, as in PPipe (docs/papers.md). A
// model is a chain of blocks. A pipeline divides it into partitions, each of which has a pool: virtual devices of one
// device class that hold the same blocks. Any of them may run any batch. A virtual device is 1 / share of a device.

namespace frostpipe {

/// Devices of one type, with equal speed and equal servers.
struct DeviceClass {
  std::string name;  // Device::type of the cluster
  int count = 0;
  int devices_per_server = 1;
  /// Bandwidth of a server's network card, separately for each direction, shared by the server's devices; 0 =
  /// unlimited.
  std::int64_t bandwidth_bytes_per_second = 0;
  /// Price of one device; not set if the cluster's file has none.
  std::optional<double> price_per_hour = std::nullopt;
  bool operator==(const DeviceClass&) const = default;
};

/// A partition of a pipeline and its pool of virtual devices.
struct ServingPartition {
  /// Blocks [first_block, end_block) of the model.
  int first_block = 0, end_block = 0;
  std::string device_class;
  int share = 1;
  int num_virtual_devices = 1;
  /// Compute time of all blocks for a batch of b requests: element [b - 1], up to the pipeline's batch size.
  std::vector<Nanoseconds> compute_ns;
  /// Bytes that one request sends over the network from the previous partition; 0 for the first one. A batch of b
  /// requests sends b times as many.
  Bytes input_bytes = 0;
  /// How long one request's bytes occupy the network cards of sender and receiver; b times as long for a batch of b.
  Nanoseconds transfer_ns = 0;
  /// Latency of a batch in the network, for any batch size; it does not occupy the cards.
  Nanoseconds latency_ns = 0;
  /// Throughput of the pool at the planned batch size: that of its computation or of its network card, whichever is
  /// lower.
  double requests_per_second = 0;
  bool operator==(const ServingPartition&) const = default;
};

struct ServingPipeline {
  int batch_size = 1;  // the same for every partition
  std::vector<ServingPartition> partitions;
  /// The time for which the first request of a batch is expected to wait for the last one.
  Nanoseconds batch_building_ns = 0;
  /// Throughput of the slowest pool.
  double requests_per_second = 0;
  bool operator==(const ServingPipeline&) const = default;
};

/// Several fine-tuned models that begin with the same layers. Every request is answered by all of them: the shared
/// layers are computed once, and the others once per head, one head after another on the same virtual device.
struct SharedPrefix {
  int layers = 1;  // number of shared leading layers
  int heads = 2;
  bool operator==(const SharedPrefix&) const = default;
};

/// A model and its pipelines, among which its requests are divided.
struct ServedModel {
  std::string name;
  /// Share of the load: with weights 3 and 1, there are three requests for this model to one for the other.
  double weight = 1;
  /// The time within which a request must be answered.
  Nanoseconds objective_ns = 0;
  /// Tokens of every request, which is one sample of a Transformer; 1 for pictures.
  int tokens = 1;
  /// Required throughput, for objective `cost`; 0 = none.
  double required_requests_per_second = 0;
  /// The rate at which requests are expected to fill the batches: the model's throughput without pipelines or, if it
  /// cannot be served so, with them; 0 = batches are built in no time.
  double building_requests_per_second = 0;
  /// Block i consists of the layers blocks[i] of the model.
  Partition blocks;
  /// Not set if there is one head. Otherwise times and bytes of the pipelines are for all heads together.
  std::optional<SharedPrefix> shared_prefix = std::nullopt;
  std::vector<ServingPipeline> pipelines;
  /// Throughput of all its pipelines.
  double requests_per_second = 0;
  Provenance provenance;
  bool operator==(const ServedModel&) const = default;
};

enum class ServingMethod {
  ppipe,       // pipelines of pools
  ppipe_np,    // no pipelines: whole models on whole devices
  ppipe_dart,  // DART-r: pipelines on one device of each class, copied
};

enum class ServingObjective {
  throughput,  // maximize the smallest throughput per weight of any model
  cost,        // minimize the price per hour of the devices in use
};

/// The parts of a latency objective that a plan leaves free.
struct ServingMargins {
  /// Fraction of the objective that is kept for queueing and other effects that the plan does not model.
  double objective_fraction = 0.4;
  /// Building a batch of b takes this factor times (b - 1) / building_requests_per_second.
  double batch_building = 1.3;
  bool operator==(const ServingMargins&) const = default;
};

/// A serving plan, the counterpart of TrainingPlan.
struct ServingPlan {
  ServingMethod method = ServingMethod::ppipe;
  ServingObjective objective = ServingObjective::throughput;
  DType dtype = DType::kFloat32;
  ServingMargins margins;
  std::vector<DeviceClass> device_classes;
  std::vector<ServedModel> models;
  /// Throughput per weight, or price per hour.
  double objective_value = 0;
  /// No plan under the same rules has a higher (throughput) or lower (cost) value than this bound. Not set for a
  /// heuristic method.
  std::optional<double> objective_bound = std::nullopt;
  bool operator==(const ServingPlan&) const = default;
};

/// Returns the distance between value and bound as a fraction of the value; nothing without a bound, or if the value is
/// 0.
std::optional<double> optimality_gap(const ServingPlan& plan);

/// True if the bound proves the plan optimal, up to the tolerance of the exact methods, 10^-5, and rounding.
bool is_proven_best(const ServingPlan& plan);

/// Returns the latency of a batch of `requests` <= the planned size through an idle pipeline: compute, transfer and
/// latency of every partition.
Nanoseconds unloaded_latency_ns(const ServingPipeline& pipeline, int requests);

/// Returns objective_ns without margins.objective_fraction, rounded down.
Nanoseconds latency_budget_ns(Nanoseconds objective_ns, const ServingMargins& margins);

/// Returns the expected time to build a batch: margins.batch_building x (requests - 1) / requests_per_second, rounded,
/// but at most 2 kMaxServingNs; 0 if the rate is 0.
Nanoseconds batch_building_ns(int requests, double requests_per_second, const ServingMargins& margins);

/// Returns the partition's class; the plan must contain it.
const DeviceClass& device_class_of(const ServingPlan& plan, const ServingPartition& partition);

/// Returns the number of whole devices of the class in use. Virtual devices can share a device if they belong to one
/// model and to the same position in their pipelines: for these it is the sum of 1 / share, rounded up.
std::int64_t devices_in_use(const ServingPlan& plan, std::string_view device_class);

/// Throws InvalidInput ("SOURCE: models[1].pipelines[0].partitions: ...") unless names are unique and known, blocks and
/// partitions are contiguous and complete, times are given for every batch size, pools fit the classes, throughputs are
/// those of the slowest parts, every planned batch including its building meets the objective without load, the value
/// is that of the models or devices, the bound is on its correct side, and numbers are within serving/plan/limits.h.
void validate(const ServingPlan& plan, std::string_view source);

/// Writes the envelope "frostpipe.plan" of version 3, or 5 if a model has a shared prefix, of kind "serving"
/// (plan/plan_kind.h). Reading calls validate().
std::string to_json(const ServingPlan& plan);
ServingPlan serving_plan_from_json(std::string_view json, std::string_view source);

/// Return the names that options and files use, such as "ppipe-np" and "cost".
std::string_view to_string(ServingMethod method);
std::string_view to_string(ServingObjective objective);
std::optional<ServingMethod> find_serving_method(std::string_view word);
/// Throw InvalidInput ("PLACE: must be ...").
void parse_text(std::string_view text, const std::string& place, ServingMethod& method);
void parse_text(std::string_view text, const std::string& place, ServingObjective& objective);

}  // namespace frostpipe
