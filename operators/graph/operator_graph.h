#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// One iteration of exact training as operators: forward, batch-norm statistics, their backward reductions, gradients
// and updates. An operator on activations can be split along the mini-batch, since every sample is computed alike.

namespace frostpipe {

enum class OperatorKind {
  forward,              // of a convolution or a linear layer
  statistics,           // partial sums of a batch norm over samples
  normalise,            // with the statistics of the whole mini-batch
  elementwise,          // pooling and the loss
  statistics_gradient,  // partial sums of a batch norm's backward
  normalise_gradient,
  elementwise_gradient,
  input_gradient,
  weight_gradient,  // a partial sum over its samples
  update,           // split along the parameters, over the devices that hold the layer
  norm_update,      // of batch norm's scale, shift and running statistics, whole on every device that applies it
};

/// Else it is an update, whose devices follow from those of its layer's other operators.
bool is_split_by_samples(OperatorKind kind);

/// Whether the operator reads the weights of its layer.
bool reads_weights(OperatorKind kind);
/// Scale and shift of its layer's batch norm, or the running statistics.
bool reads_norm(OperatorKind kind);

/// Of the whole mini-batch on one device of a class. A part with the share s of the samples takes overhead + s x work,
/// of time, and of memory for itself alone, beside what it reads and gives.
struct ClassCost {
  std::string device_class;
  Nanoseconds overhead_ns = 0;
  Nanoseconds work_ns = 0;
  Bytes overhead_bytes = 0;
  Bytes work_bytes = 0;
  bool operator==(const ClassCost&) const = default;
};

struct Operator {
  std::string name;
  OperatorKind kind = OperatorKind::forward;
  int layer = 0;
  /// Of the whole mini-batch; of statistics, what every part sends.
  Bytes output_bytes = 0;
  /// Of the layer; 0 where the operator has to do with no weights.
  Bytes weight_bytes = 0;
  std::vector<ClassCost> times;
  bool operator==(const Operator&) const = default;
};

enum class OperatorEdgeKind {
  samples,          // a part reads the output of its own samples
  statistics,       // every part reads what every part sends
  weight_gradient,  // every part of the update reads its parameters of every partial sum
};

struct OperatorEdge {
  int from = 0, to = 0;
  OperatorEdgeKind kind = OperatorEdgeKind::samples;
  bool operator==(const OperatorEdge&) const = default;
};

struct OperatorGraph {
  std::string net;
  int batch = 1;  // samples of the mini-batch
  std::vector<Operator> operators;
  std::vector<OperatorEdge> edges;
  bool operator==(const OperatorGraph&) const = default;
};

/// One more than the last layer.
int num_layers(const OperatorGraph& graph);

/// Every operator after those it reads. Requires no cycle.
std::vector<int> topological_order(const OperatorGraph& graph);

/// What is left where the first `layers` layers are frozen: their gradients, updates and statistics disappear, and what
/// only these needed. A frozen batch norm normalises with its running statistics.
OperatorGraph frozen(const OperatorGraph& graph, int layers);

/// Throws InvalidInput ("SOURCE: edges[3]: ...") unless names are unique, edges lead from operator to operator, nothing
/// is in a circle, updates end the iteration, and device classes occur once per operator.
void validate(const OperatorGraph& graph, std::string_view source);

/// Envelope "frostpipe.operator_profile". Reading validates.
std::string to_json(const OperatorGraph& graph);
OperatorGraph operator_graph_from_json(std::string_view json, std::string_view source);

std::string_view to_string(OperatorKind kind);
std::string_view to_string(OperatorEdgeKind kind);
void parse_text(std::string_view text, const std::string& place, OperatorKind& kind);
void parse_text(std::string_view text, const std::string& place, OperatorEdgeKind& kind);

}  // namespace frostpipe
