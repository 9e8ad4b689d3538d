#include "profiles/import/graph_order.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>

namespace frostpipe {
namespace {

using BoostGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

BoostGraph boost_graph(const LayerGraph& graph, bool descending) {
  std::vector<std::pair<int, int>> edges = graph.edges;
  std::sort(edges.begin(), edges.end());
  if (descending) std::reverse(edges.begin(), edges.end());
  return {edges.begin(), edges.end(), graph.output_bytes.size()};
}

/// Returns an empty order if the graph has a cycle.
std::vector<int> depth_first(const LayerGraph& graph, bool descending) {
  std::vector<int> order;
  try {
    const BoostGraph with_sorted_edges = boost_graph(graph, descending);
    boost::topological_sort(with_sorted_edges, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return {};
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<int> lower_numbers_first(const LayerGraph& graph) {
  const BoostGraph with_sorted_edges = boost_graph(graph, false);
  std::vector<int> waiting(graph.output_bytes.size(), 0), order;
  for (const auto& [from, to] : graph.edges) ++waiting[to];
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int vertex = 0; vertex < static_cast<int>(waiting.size()); ++vertex)
    if (waiting[vertex] == 0) ready.push(vertex);
  while (!ready.empty()) {
    const int vertex = ready.top();
    ready.pop();
    order.push_back(vertex);
    for (const auto next : boost::make_iterator_range(boost::adjacent_vertices(vertex, with_sorted_edges)))
      if (--waiting[next] == 0) ready.push(static_cast<int>(next));
  }
  return order;
}

}  // namespace

std::vector<double> cut_bytes(const LayerGraph& graph, const std::vector<int>& order) {
  std::vector<std::size_t> place(order.size()), last_use(order.size());  // by vertex
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = last_use[order[i]] = i;
  for (const auto& [from, to] : graph.edges) last_use[from] = std::max(last_use[from], place[to]);
  std::vector<double> change(order.size() + 1, 0), bytes;
  for (std::size_t vertex = 0; vertex < order.size(); ++vertex) {
    change[place[vertex]] += graph.output_bytes[vertex];
    change[last_use[vertex]] -= graph.output_bytes[vertex];
  }
  double now = 0;
  for (std::size_t i = 0; i < order.size(); ++i) bytes.push_back(std::max(0.0, now += change[i]));  // against rounding
  bytes.back() = graph.output_bytes[order.back()];
  return bytes;
}

std::vector<int> chain_order(const LayerGraph& graph) {
  std::vector<int> best;
  double least = 0;
  for (const std::vector<int>& order :
       {lower_numbers_first(graph), depth_first(graph, false), depth_first(graph, true)}) {
    if (order.size() < graph.output_bytes.size() || order.empty()) return {};
    const std::vector<double> bytes = cut_bytes(graph, order);
    const double sum = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    if (!best.empty() && sum >= least) continue;
    best = order;
    least = sum;
  }
  return best;
}

}  // namespace frostpipe
