#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/graph/operator_graph.h"
#include "plan/plan.h"
#include "profiles/cluster.h"

// An iteration of exact training as operators on unequal devices: which samples each operator computes where, and in
// which order. Batch norm uses the statistics of the whole mini-batch, so the result equals that of one device.

namespace frostpipe {

struct OperatorDevice {
  std::string device_class;  // Device::type of the cluster
  int node = 0;
  bool operator==(const OperatorDevice&) const = default;
};

struct OperatorMachine {
  std::vector<OperatorDevice> devices;
  /// The links of every ordered pair of devices, in one node and between nodes.
  Link within_node, between_nodes;
  /// True if a device sends to only one other device at a time, and receives from only one.
  bool shared_ports = false;
  /// As in Cluster. The task that sends a message takes longer by message_work_ns, and so does the first that reads it.
  std::int64_t message_bytes_per_cpu_second = 0;
  bool operator==(const OperatorMachine&) const = default;
};

/// Samples [begin, end) of the mini-batch on a device.
struct OperatorRange {
  int device = 0, begin = 0, end = 0;
  bool operator==(const OperatorRange&) const = default;
};

/// The ranges of each operator, ascending by samples, at most one per device. Updates have none: their devices are
/// those of holders_of().
using OperatorPlacement = std::vector<std::vector<OperatorRange>>;

enum class OperatorMethod {
  mtrain,
  single,         // all on the fastest device
  data_parallel,  // every operator split by the devices' speeds
  layer_wise,     // each layer on the device that is best for it
  pipeline,       // stages of layers, which wait at each batch norm
};

/// A plan for one iteration; a TrainingPlan is one for a whole run.
struct OperatorPlan {
  OperatorMethod method = OperatorMethod::mtrain;
  /// Number of leading layers that are frozen in the graph.
  int frozen_layers = 0;
  OperatorMachine machine;
  OperatorGraph graph;
  OperatorPlacement placement;
  /// For each device, the operators of which it has a part, in the order in which it runs them.
  std::vector<std::vector<int>> order;
  Nanoseconds predicted_ns = 0;
  /// No plan of these operators on these devices takes less time than this.
  Nanoseconds lower_bound_ns = 0;
  /// The peak memory of each device, as counted by peak_memory_of() (operators/simulator/operator_memory.h).
  std::vector<Bytes> predicted_memory_bytes;
  Provenance provenance;
  bool operator==(const OperatorPlan&) const = default;
};

/// Throws InvalidInput ("PLACE: ...") unless every operator has a time on the class of every device.
void require_times(const OperatorGraph& graph, const OperatorMachine& machine, std::string_view place);

/// Throws InvalidInput ("PLACE: ...") unless the bandwidths of links and processors are unlimited (0) or at least 1
/// MB/s, so that sums of times stay within 64 bits.
void require_links(const OperatorMachine& machine, std::string_view place);

/// Returns the time of an operator on a device for the fraction `share` of the mini-batch.
Nanoseconds duration_ns(const Operator& one, const std::string& device_class, double share);

/// Returns the working memory that the operator needs for that fraction.
Bytes own_bytes(const Operator& one, const std::string& device_class, double share);

const Link& link_between(const OperatorMachine& machine, int from, int to);

/// Returns the processor time that a message takes at each of its two ends.
Nanoseconds message_work_ns(const OperatorMachine& machine, Bytes bytes);

/// Returns the time for which a message occupies the link between two devices, without the link's latency. Bandwidths
/// are measured end to end and so include message_work_ns() of both ends, which is subtracted.
Nanoseconds message_occupancy_ns(const OperatorMachine& machine, int from, int to, Bytes bytes);

/// Returns the devices of each update, ascending: those that have a part of the layer's forward or input gradient and
/// so need its weights; for a norm_update, those that apply the batch norm or its gradient. Empty for other operators.
std::vector<std::vector<int>> holders_of(const OperatorGraph& graph, const OperatorPlacement& placement);

/// Throws InvalidInput ("SOURCE: placement[3]: ...") unless there are devices, the graph is valid, require_links() and
/// require_times() hold, ranges cover the mini-batch, each device's order has each of its parts once, there is a
/// predicted memory for every device, and the bound is at most the predicted time. Devices may still wait for each
/// other in a cycle, which simulate_operators() finds.
void validate(const OperatorPlan& plan, std::string_view source);

/// The JSON has the envelope "frostpipe.plan" of version 4 and the kind "operators" (plan/plan_kind.h). Reading
/// validates.
std::string to_json(const OperatorPlan& plan);
OperatorPlan operator_plan_from_json(std::string_view json, std::string_view source);

/// Returns the name that options and files use, such as "mtrain" or "mtrain-single".
std::string_view to_string(OperatorMethod method);
std::optional<OperatorMethod> find_operator_method(std::string_view word);
void parse_text(std::string_view text, const std::string& place, OperatorMethod& method);

}  // namespace frostpipe
