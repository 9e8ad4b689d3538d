#include "operators/graph/operator_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <set>
#include <utility>

#include "base/enum_words.h"
#include "base/error.h"
#include "operators/graph/operator_graph_json.h"

namespace frostpipe {
namespace {

constexpr std::string_view kFormat = "frostpipe.operator_profile";

constexpr EnumWords<OperatorKind, 11> kKinds{{{OperatorKind::forward, "forward"},
                                              {OperatorKind::statistics, "statistics"},
                                              {OperatorKind::normalise, "normalise"},
                                              {OperatorKind::elementwise, "elementwise"},
                                              {OperatorKind::statistics_gradient, "statistics_gradient"},
                                              {OperatorKind::normalise_gradient, "normalise_gradient"},
                                              {OperatorKind::elementwise_gradient, "elementwise_gradient"},
                                              {OperatorKind::input_gradient, "input_gradient"},
                                              {OperatorKind::weight_gradient, "weight_gradient"},
                                              {OperatorKind::update, "update"},
                                              {OperatorKind::norm_update, "norm_update"}}};
constexpr EnumWords<OperatorEdgeKind, 3> kEdgeKinds{{{OperatorEdgeKind::samples, "samples"},
                                                     {OperatorEdgeKind::statistics, "statistics"},
                                                     {OperatorEdgeKind::weight_gradient, "weight_gradient"}}};

bool is_trained_part(OperatorKind kind) {
  return kind == OperatorKind::statistics || kind == OperatorKind::statistics_gradient ||
         kind == OperatorKind::weight_gradient || !is_split_by_samples(kind);
}

/// Returns, for each operator, whether it is an update of a layer that trains, or whether such an update depends on it,
/// directly or indirectly.
std::vector<bool> needed_by_updates(const OperatorGraph& graph, int first_trainable) {
  const auto order = topological_order(graph);
  std::vector<bool> needed(graph.operators.size());
  for (std::size_t i = 0; i < needed.size(); ++i)
    needed[i] = !is_split_by_samples(graph.operators[i].kind) && graph.operators[i].layer >= first_trainable;
  std::vector<std::vector<int>> inputs(needed.size());
  for (const auto& edge : graph.edges) inputs[edge.to].push_back(edge.from);
  for (auto op = order.rbegin(); op != order.rend(); ++op)
    if (needed[*op])
      for (const int input : inputs[*op]) needed[input] = true;
  return needed;
}

void require_no_cycle(const OperatorGraph& graph, std::string_view source) {
  std::vector<int> waits_for(graph.operators.size());
  std::vector<std::vector<int>> outputs(graph.operators.size());
  for (const auto& edge : graph.edges) {
    ++waits_for[edge.to];
    outputs[edge.from].push_back(edge.to);
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < waits_for.size(); ++i)
    if (waits_for[i] == 0) ready.push_back(i);
  std::size_t num_done = 0;
  while (!ready.empty()) {
    const std::size_t op = ready.back();
    ready.pop_back();
    ++num_done;
    for (const int to : outputs[op])
      if (--waits_for[to] == 0) ready.push_back(static_cast<std::size_t>(to));
  }
  if (num_done == waits_for.size()) return;
  const auto waiting = std::ranges::find_if(waits_for, [](int count) { return count > 0; });
  throw InvalidInput(fmt::format("{}: edges", source), "must hold no cycle",
                     fmt::format("one before \"{}\"", graph.operators[waiting - waits_for.begin()].name));
}

}  // namespace

bool reads_weights(OperatorKind kind) { return kind == OperatorKind::forward || kind == OperatorKind::input_gradient; }

bool reads_norm(OperatorKind kind) {
  return kind == OperatorKind::normalise || kind == OperatorKind::statistics_gradient ||
         kind == OperatorKind::normalise_gradient;
}

bool is_split_by_samples(OperatorKind kind) {
  return kind != OperatorKind::update && kind != OperatorKind::norm_update;
}

int num_layers(const OperatorGraph& graph) {
  int most = 0;
  for (const auto& one : graph.operators) most = std::max(most, one.layer + 1);
  return most;
}

std::vector<int> topological_order(const OperatorGraph& graph) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> edges(graph.operators.size());
  for (const auto& edge : graph.edges) boost::add_edge(edge.from, edge.to, edges);
  std::vector<int> reverse;
  boost::topological_sort(edges, std::back_inserter(reverse));
  return {reverse.rbegin(), reverse.rend()};
}

OperatorGraph frozen(const OperatorGraph& graph, int layers) {
  if (layers == 0) return graph;
  const auto needed = needed_by_updates(graph, layers);
  OperatorGraph left{.net = graph.net, .batch = graph.batch};
  std::vector<int> place(graph.operators.size(), -1);
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Operator& one = graph.operators[i];
    if (!needed[i] || (one.layer < layers && is_trained_part(one.kind))) continue;
    place[i] = static_cast<int>(left.operators.size());
    left.operators.push_back(one);
  }
  for (const auto& edge : graph.edges)
    if (place[edge.from] >= 0 && place[edge.to] >= 0)
      left.edges.push_back({.from = place[edge.from], .to = place[edge.to], .kind = edge.kind});
  return left;
}

void validate(const OperatorGraph& graph, std::string_view source) {
  if (graph.operators.empty()) throw InvalidInput(fmt::format("{}: operators", source), "must not be empty", "empty");
  std::set<std::string> names;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& one = graph.operators[i];
    const std::string place = fmt::format("{}: operators[{}]", source, i);
    if (!names.insert(one.name).second) throw InvalidInput(place + ".name", "must be unique", "\"" + one.name + "\"");
    std::set<std::string> classes;
    for (const auto& time : one.times)
      if (!classes.insert(time.device_class).second)
        throw InvalidInput(place + ".times", "must have each device class once", "\"" + time.device_class + "\"");
  }
  const int count = static_cast<int>(graph.operators.size());
  std::set<std::pair<int, int>> joined;
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const OperatorEdge& edge = graph.edges[i];
    const std::string place = fmt::format("{}: edges[{}]", source, i);
    for (const int end : {edge.from, edge.to})
      if (end >= count)
        throw InvalidInput(place, fmt::format("must join two of the {} operators", count), std::to_string(end));
    if (!joined.emplace(edge.from, edge.to).second)
      throw InvalidInput(place, "must be the only edge between its operators",
                         fmt::format("one more from \"{}\" to \"{}\"", graph.operators[edge.from].name,
                                     graph.operators[edge.to].name));
    const bool to_update = graph.operators[edge.to].kind == OperatorKind::update;
    if (to_update != (edge.kind == OperatorEdgeKind::weight_gradient))
      throw InvalidInput(place, "must be of kind weight_gradient where it leads to an update, and only there",
                         fmt::format("\"{}\"", to_string(edge.kind)));
    if (graph.operators[edge.to].kind == OperatorKind::norm_update && edge.kind != OperatorEdgeKind::statistics)
      throw InvalidInput(place, "must be of kind statistics where it leads to a norm_update",
                         fmt::format("\"{}\"", to_string(edge.kind)));
    if (!is_split_by_samples(graph.operators[edge.from].kind))
      throw InvalidInput(place, "must not begin at an update, which ends the iteration",
                         "\"" + graph.operators[edge.from].name + "\"");
  }
  require_no_cycle(graph, source);
}

std::string to_json(const OperatorGraph& graph) { return json::write_envelope(kFormat, graph); }

OperatorGraph operator_graph_from_json(std::string_view json, std::string_view source) {
  auto graph = json::read_envelope<OperatorGraph>(json, source, kFormat);
  validate(graph, source);
  return graph;
}

std::string_view to_string(OperatorKind kind) { return word_of(kKinds, kind); }
std::string_view to_string(OperatorEdgeKind kind) { return word_of(kEdgeKinds, kind); }
void parse_text(std::string_view text, const std::string& place, OperatorKind& kind) {
  kind = parse_word(kKinds, text, place, "must be a kind of operator, such as forward or weight_gradient");
}
void parse_text(std::string_view text, const std::string& place, OperatorEdgeKind& kind) {
  kind = parse_word(kEdgeKinds, text, place, "must be samples, statistics or weight_gradient");
}

}  // namespace frostpipe
