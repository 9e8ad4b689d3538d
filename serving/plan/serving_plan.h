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

// How a cluster of unequal devices serves models under latency objectives, as PPipe plans it (docs/papers.md). A model
// is a chain of blocks. A pipeline cuts it into partitions, and each partition has a pool: virtual devices of one
// class, any of which may run any batch. A virtual device is 1 / share of a device. All virtual devices of a pool hold
// the same blocks.

namespace frostpipe {

/// Devices of one type, alike in speed and in their servers.
struct DeviceClass {
  std::string name;  // Device::type of the cluster
  int count = 0;
  int devices_per_server = 1;
  /// Of a server's network card, in and out each on its own, which its devices share; 0 = unlimited.
  std::int64_t bandwidth_bytes_per_second = 0;
  /// Of one device; none where the cluster's file has no price.
  std::optional<double> price_per_hour = std::nullopt;
  bool operator==(const DeviceClass&) const = default;
};

/// One pool and what its virtual devices do.
struct ServingPartition {
  /// Blocks [first_block, end_block) of the model.
  int first_block = 0, end_block = 0;
  std::string device_class;
  int share = 1;
  int num_virtual_devices = 1;
  /// Of a batch of 1, 2, ... up to the pipeline's batch size: [b - 1] for b requests, all blocks together.
  std::vector<Nanoseconds> compute_ns;
  /// What one request brings over the network from the partition before; 0 for the first. A batch of b requests
  /// brings b times as much.
  Bytes input_bytes = 0;
  /// That the bytes of one request occupy the sender's and the receiver's network card; a batch of b: b times as long.
  Nanoseconds transfer_ns = 0;
  /// Of a batch on its way, whatever its size; it occupies no card.
  Nanoseconds latency_ns = 0;
  /// Of the pool at the planned batch size: computing, or its card where that is slower.
  double requests_per_second = 0;
  bool operator==(const ServingPartition&) const = default;
};

struct ServingPipeline {
  int batch_size = 1;  // of every partition
  std::vector<ServingPartition> partitions;
  /// How long the first request of a batch is expected to wait for the last one.
  Nanoseconds batch_building_ns = 0;
  /// Of its slowest pool.
  double requests_per_second = 0;
  bool operator==(const ServingPipeline&) const = default;
};

/// Several fine-tuned models that begin with the same layers. Every request is answered by all of them: the shared
/// layers are computed once, the others once per head, one head after the other on the same virtual device.
struct SharedPrefix {
  int layers = 1;  // leading ones of the model
  int heads = 2;
  bool operator==(const SharedPrefix&) const = default;
};

/// A model and its pipelines, which share its requests.
struct ServedModel {
  std::string name;
  /// Its part of the load: with weights 3 and 1, three requests for this model to one for the other.
  double weight = 1;
  /// A request must be answered within it.
  Nanoseconds objective_ns = 0;
  /// Of every request; a sample of a Transformer. 1 for pictures.
  int tokens = 1;
  /// At least so many, where the cheapest plan is sought; 0 = any.
  double required_requests_per_second = 0;
  /// At which batches are expected to be built: what the model gets without pipelines, or where it cannot be served so,
  /// with them; 0 = they are built in no time.
  double building_requests_per_second = 0;
  /// Block i is the layers blocks[i] of the model.
  Partition blocks;
  /// None: one head. Else times and bytes of the pipelines are those of all heads together.
  std::optional<SharedPrefix> shared_prefix = std::nullopt;
  std::vector<ServingPipeline> pipelines;
  /// Of all its pipelines.
  double requests_per_second = 0;
  Provenance provenance;
  bool operator==(const ServedModel&) const = default;
};

enum class ServingMethod {
  ppipe,       // pipelines of pools
  ppipe_np,    // no pipelines: whole models on whole devices
  ppipe_dart,  // DART-r: pipelines of one fast and one slow device, copied
};

enum class ServingObjective {
  throughput,  // the least requests per second of a model per its weight, as many as possible
  cost,        // the price per hour of the devices in use, as low as possible
};

/// What a plan keeps free of a latency objective.
struct ServingMargins {
  /// For queueing and what else the plan does not know.
  double objective_fraction = 0.4;
  /// Batches of b take this many times (b - 1) / building_requests_per_second to build.
  double batch_building = 1.3;
  bool operator==(const ServingMargins&) const = default;
};

/// What shall serve: sibling of TrainingPlan.
struct ServingPlan {
  ServingMethod method = ServingMethod::ppipe;
  ServingObjective objective = ServingObjective::throughput;
  DType dtype = DType::kFloat32;
  ServingMargins margins;
  std::vector<DeviceClass> device_classes;
  std::vector<ServedModel> models;
  /// Requests per second per weight, or price per hour.
  double objective_value = 0;
  /// Of the same rules no plan is beyond it (throughput), or below it (cost); none: the method proves nothing.
  std::optional<double> objective_bound = std::nullopt;
  bool operator==(const ServingPlan&) const = default;
};

/// Between value and bound, as a part of the value; none without a bound.
std::optional<double> optimality_gap(const ServingPlan& plan);

/// Whether the bound leaves nothing to be found but what the exact methods pass over: a part of 10^-5, and rounding.
bool is_proven_best(const ServingPlan& plan);

/// Of a batch of `requests` <= the planned size from its first partition to its last where nothing is busy: compute,
/// transfer and latency of every partition.
Nanoseconds unloaded_latency_ns(const ServingPipeline& pipeline, int requests);

/// Of objective_ns, what margins.objective_fraction leaves, rounded down.
Nanoseconds latency_budget_ns(Nanoseconds objective_ns, const ServingMargins& margins);

/// How long a batch is expected to be built: margins.batch_building x (requests - 1) / requests_per_second, rounded; 0
/// where the rate is 0.
Nanoseconds batch_building_ns(int requests, double requests_per_second, const ServingMargins& margins);

/// Requires that the plan has the class.
const DeviceClass& device_class_of(const ServingPlan& plan, const ServingPartition& partition);

/// Whole devices of the class in use. Virtual devices share a device where they are of one model and stand at the same
/// place of their pipelines: of these, the sum of 1 / share over the virtual devices, rounded up.
std::int64_t devices_in_use(const ServingPlan& plan, std::string_view device_class);

/// Throws InvalidInput ("SOURCE: models[1].pipelines[0].partitions: ...") unless names are unique and known, blocks and
/// partitions are contiguous and complete, times are there for every batch size, pools fit the classes, throughputs are
/// those of the slowest parts, every planned batch with its building meets the objective without load, the value is the
/// one of the models or devices, the bound is not on its wrong side, and numbers are within serving/plan/limits.h.
void validate(const ServingPlan& plan, std::string_view source);

/// Envelope "frostpipe.plan" of version 3, or 5 where a model has a shared prefix, of kind "serving"
/// (plan/plan_kind.h). Reading validates.
std::string to_json(const ServingPlan& plan);
ServingPlan serving_plan_from_json(std::string_view json, std::string_view source);

/// "ppipe-np", "cost", as in options and files.
std::string_view to_string(ServingMethod method);
std::string_view to_string(ServingObjective objective);
std::optional<ServingMethod> find_serving_method(std::string_view word);
/// Throw InvalidInput ("PLACE: must be ...").
void parse_text(std::string_view text, const std::string& place, ServingMethod& method);
void parse_text(std::string_view text, const std::string& place, ServingObjective& objective);

}  // namespace frostpipe
