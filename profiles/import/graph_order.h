#pragma once
#include <utility>
#include <vector>

namespace frostpipe {

/// A directed graph of layers. Vertices count from 0. An edge (a, b) means that b needs a's output activation.
struct LayerGraph {
  std::vector<double> output_bytes;        // by vertex
  std::vector<std::pair<int, int>> edges;  // each edge once
};

/// Returns the bytes that cross the cut after each place of `order`: the outputs of all vertices before it that are
/// needed after it, each once. After the last place it is the last vertex's output. Every prefix of a topological order
/// is a valid cut, since nothing before it needs anything after it. Requires at least one vertex.
std::vector<double> cut_bytes(const LayerGraph& graph, const std::vector<int>& order);

/// Returns a topological order for planners that cut chains: the one of three with the fewest bytes over all cuts. One
/// order takes lower numbers first (as files list layers), two are depth-first, so they finish a branch before they
/// begin the next (Boost.Graph's topological sort along edges in ascending and in descending order). The result need
/// not be the best over all orders, which is hard to find. The result is empty if the graph has a cycle.
std::vector<int> chain_order(const LayerGraph& graph);

}  // namespace frostpipe
