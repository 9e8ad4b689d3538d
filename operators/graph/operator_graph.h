#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// One iteration of exact training as operators: forward, batch-norm statistics, their backward reductions, gradients
// and updates. An operator on activations can be split along the mini-batch, since every sample is computed alike.

namespace frostpipe {

enum class OperatorKind {
  forward,              // a convolution or a linear layer
  statistics,           // partial sums of a batch norm over samples
  normalise,            // uses the statistics of the whole mini-batch
  elementwise,          // pooling and the loss
  statistics_gradient,  // partial sums of a batch norm's backward
  normalise_gradient,
  elementwise_gradient,
  input_gradient,
  weight_gradient,  // a partial sum over its samples
  update,           // split along the parameters, over the devices that hold the layer
  norm_update,      // updates batch norm's scale, shift and running statistics on every device that applies it
};

/// Returns false for updates, whose devices follow from those of their layer's other operators.
bool is_split_by_samples(OperatorKind kind);

/// Returns whether the operator reads the weights of its layer.
bool reads_weights(OperatorKind kind);
/// Returns whether the operator reads the scale and shift of its layer's batch norm, or its running statistics.
bool reads_norm(OperatorKind kind);

/// The cost of an operator for the whole mini-batch on one device of a class. A part with the fraction s of the samples
/// takes overhead + s x work, both of time and of working memory (besides its inputs and outputs).
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
  /// Size of the output for the whole mini-batch; for statistics, of the message that every part sends.
  Bytes output_bytes = 0;
  /// Size of the layer's weights or, for a norm_update, of scale and shift; 0 if the operator uses none.
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

/// The largest numbers of bytes and samples, whose product stays within 64 bits. Reading refuses larger ones.
inline constexpr Bytes kMaxOperatorBytes = Bytes{1} << 38;
inline constexpr int kMaxOperatorBatch = 1 << 20;

struct OperatorGraph {
  std::string net;
  int batch = 1;  // samples of the mini-batch
  std::vector<Operator> operators;
  std::vector<OperatorEdge> edges;
  bool operator==(const OperatorGraph&) const = default;
};

/// Returns the number of layers, one more than the largest layer of an operator.
int num_layers(const OperatorGraph& graph);

/// Returns an order in which every operator comes after those that it reads. The graph must have no cycle.
std::vector<int> topological_order(const OperatorGraph& graph);

/// Returns the graph with the first `layers` layers frozen: their gradients, updates and statistics disappear, and the
/// operators that only these needed. A frozen batch norm normalises with its running statistics.
OperatorGraph frozen(const OperatorGraph& graph, int layers);

/// Throws InvalidInput ("SOURCE: edges[3]: ...") unless there are operators, their names are unique, each has a device
/// class at most once, and edges lead from operator to operator, at most one from one to another, without a cycle. No
/// edge leads from an update; those to an update are the edges of kind weight_gradient, and those to a norm_update are
/// of kind statistics.
void validate(const OperatorGraph& graph, std::string_view source);

/// The JSON has the envelope "frostpipe.operator_profile". Reading validates.
std::string to_json(const OperatorGraph& graph);
OperatorGraph operator_graph_from_json(std::string_view json, std::string_view source);

std::string_view to_string(OperatorKind kind);
std::string_view to_string(OperatorEdgeKind kind);
void parse_text(std::string_view text, const std::string& place, OperatorKind& kind);
void parse_text(std::string_view text, const std::string& place, OperatorEdgeKind& kind);

}  // namespace frostpipe
