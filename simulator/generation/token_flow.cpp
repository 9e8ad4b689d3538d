#include "simulator/generation/token_flow.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <cstdint>

#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr double kUnitsPerToken = 1000;  // capacities are whole numbers

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// With the edge back of no capacity that the algorithm needs.
Traits::edge_descriptor add_edge(Graph& graph, std::size_t from, std::size_t to, double tokens_per_second) {
  const auto edge = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  const double most = 1e15;  // of all edges together less than 64 bits hold
  boost::get(boost::edge_capacity, graph)[edge] = std::llround(std::min(kUnitsPerToken * tokens_per_second, most));
  boost::get(boost::edge_capacity, graph)[back] = 0;
  boost::get(boost::edge_reverse, graph)[edge] = back;
  boost::get(boost::edge_reverse, graph)[back] = edge;
  return edge;
}

}  // namespace

TokenFlow maximum_flow(const GenerationCluster& cluster, const std::vector<double>& throughputs) {
  FROSTPIPE_CHECK(throughputs.size() == cluster.machines.size(), "every machine has a throughput");
  const int coordinator = cluster.coordinator();
  const auto rate = [&](int from, int to, double bytes_per_second) {
    return bytes_per_second / static_cast<double>(cluster.message_bytes(from, to, 1));
  };
  // A machine is an edge from its vertex 2 i to 2 i + 1; the coordinator is the sink and the source.
  Graph graph(2 * cluster.machines.size() + 2);
  const std::size_t sink = 2 * coordinator, source = sink + 1;
  for (int i = 0; i < coordinator; ++i)
    add_edge(graph, 2 * i, 2 * i + 1, std::min(throughputs[i], rate(i, i, cluster.machines[i].card_bytes_per_second)));
  struct Edge {
    int from, to;
    Traits::edge_descriptor edge;
  };
  std::vector<Edge> edges;
  const auto next = successors(cluster);
  for (int from = 0; from <= coordinator; ++from)
    for (const int to : next[from])
      edges.push_back(
          {from, to, add_edge(graph, 2 * from + 1, 2 * to, rate(from, to, cluster.links[from][to].bytes_per_second))});
  const std::int64_t units = boost::push_relabel_max_flow(graph, source, sink);
  TokenFlow flow{.tokens_per_second = static_cast<double>(units) / kUnitsPerToken,
                 .edges = std::vector(cluster.machines.size() + 1, std::vector<double>(cluster.machines.size() + 1))};
  for (const Edge& one : edges)
    flow.edges[one.from][one.to] = static_cast<double>(boost::get(boost::edge_capacity, graph)[one.edge] -
                                                       boost::get(boost::edge_residual_capacity, graph)[one.edge]) /
                                   kUnitsPerToken;
  return flow;
}

}  // namespace frostpipe
