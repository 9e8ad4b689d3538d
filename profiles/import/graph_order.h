#pragma once
#include <utility>
#include <vector>

namespace frostpipe {

/// A directed graph of layers. Vertices count from 0; an edge (a, b): b needs a's output activation.
struct LayerGraph {
  std::vector<double> output_bytes;        // by vertex
  std::vector<std::pair<int, int>> edges;  // each once
};

/// Bytes that cross the cut after each place of `order`: the outputs of all vertices before it that something after
/// it needs, each once; after the last place the last vertex's output. Every prefix of a topological order is a valid
/// cut: nothing after it is needed before it.
std::vector<double> cut_bytes(const LayerGraph& graph, const std::vector<int>& order);

/// A chain for planners that cut chains: a topological order, of three the one with the fewest bytes over all cuts:
/// lower numbers first where there is a choice (as files list layers), and two depth-first orders, which finish a
/// branch before they begin the next (Boost.Graph's topological sort along edges in ascending and in descending order).
/// Minimal over all orders only by luck: that is hard. Empty if the graph has a cycle.
std::vector<int> chain_order(const LayerGraph& graph);

}  // namespace frostpipe
