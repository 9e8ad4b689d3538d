#pragma once
#include <vector>

#include "operators/graph/net_shape.h"
#include "operators/graph/operator_graph.h"

namespace frostpipe {

/// The operations of an operator and the bytes that it moves in its device's memory, for the whole mini-batch.
struct OperatorCost {
  double operations = 0, bytes = 0;
};

struct CountedOperators {
  OperatorGraph graph;  // no operator has a time
  std::vector<OperatorCost> costs;
};

/// Throws InvalidInput ("--global-batch: ...") if some operator has a larger output for `batch` samples than operator
/// graphs can have.
void require_batch(const NetShape& net, int batch);

/// Returns the operators of an iteration of a net in float32, in the order of one device. An addition and a ReLU are
/// part of the batch norm before them; without batch norm, a ReLU is part of the forward. Layers, kinds and edges
/// determine the inputs of each operator, so that a device can compute the operators from the graph and the net alone.
/// The sizes of the graph are within its limits if require_batch() holds.
CountedOperators counted_operators(const NetShape& net, int batch);

}  // namespace frostpipe
