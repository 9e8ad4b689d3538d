#include "profiles/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/separated_values.h"
#include "profiles/import/foreign_json.h"
#include "profiles/import/formats.h"
#include "profiles/import/graph_order.h"

namespace frostpipe {
namespace {

struct Node {
  std::string name;
  double forward_ns = 0, backward_ns = 0;  // for all measured samples
  double activation_bytes = 0, parameter_bytes = 0;
};

struct Graph {
  std::map<int, Node> nodes;  // by the node's number
  std::set<std::pair<int, int>> edges;
};

/// Parses the text format of PipeDream and DAPPLE.
class GraphText {
 public:
  GraphText(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Graph read() {
    Graph graph;
    for (std::string_view line : lines_of(text_)) {
      ++line_number_;
      const bool is_edge = line.starts_with('\t') || line.starts_with(' ');
      line = trimmed(line);
      if (line.empty()) continue;
      const std::size_t split = line.find(" -- ");
      if (split == std::string_view::npos) fail("must be \"node1 -- ...\"", line);
      const int first = node_number(line.substr(0, split));
      const std::string_view rest = line.substr(split + 4);
      if (is_edge) {
        graph.edges.emplace(first, node_number(rest));
        continue;
      }
      Node node{.name = std::string(trimmed(rest.substr(0, rest.find(" -- ")))),
                .forward_ns = 1e6 * value_of(rest, "forward_compute_time="),
                .backward_ns = 1e6 * value_of(rest, "backward_compute_time="),
                .activation_bytes = value_of(rest, "activation_size="),
                .parameter_bytes = value_of(rest, "parameter_size=")};
      if (!graph.nodes.emplace(first, std::move(node)).second)
        fail("must have another number than the nodes before it", line);
    }
    return graph;
  }

 private:
  [[noreturn]] void fail(std::string_view rule, std::string_view value) const {
    throw InvalidInput(fmt::format("{}, line {}", source_, line_number_), rule,
                       fmt::format("\"{}\"", value.substr(0, 80)));
  }
  int node_number(std::string_view text) const {
    const std::string_view name = trimmed(text);
    int number = -1;
    const std::string_view digits = name.starts_with("node") ? name.substr(4) : std::string_view();
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("must be a node such as node12", name);
    return number;
  }
  /// Parses a number, or the sum of a list "[a; b]".
  double value_of(std::string_view line, std::string_view key) const {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos) fail(fmt::format("must have {}", key), line);
    std::string_view rest = line.substr(at + key.size());
    const bool is_list = rest.starts_with('[');
    if (is_list) rest.remove_prefix(1);
    double sum = 0;
    for (;;) {
      rest = trimmed(rest);
      double number = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      if (error != std::errc() || !std::isfinite(number) || number < 0)
        fail(fmt::format("must have a number >= 0 after {}", key), line);
      sum += number;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
      if (!is_list || !rest.starts_with(';')) return sum;
      rest.remove_prefix(1);
    }
  }

  std::string_view text_, source_;
  int line_number_ = 0;
};

Graph read_piper(std::string_view text, std::string_view source) {
  const foreign::File file(text, source);
  const foreign::Value root = file.root();
  Graph graph;
  for (const foreign::Value& node : root["nodes"].elements()) {
    const foreign::Value plain = node["TMPCs"]["1"][0];
    const double time = 1e9 * plain["timePerSample"].number();
    graph.nodes[node["id"].integer()] = {.name = node["name"].text(),
                                         .forward_ns = time / 3,
                                         .backward_ns = 2 * time / 3,
                                         .parameter_bytes = plain["parameterSize"].number()};
  }
  for (const foreign::Value& edge : root["edges"].elements()) {
    const int from = edge["sourceId"].integer();
    graph.edges.emplace(from, edge["destId"].integer());
    const auto node = graph.nodes.find(from);
    if (node != graph.nodes.end())
      node->second.activation_bytes = std::max(node->second.activation_bytes, edge["communicationCost"].number());
  }
  return graph;
}

/// Returns the graph with vertices counted from 0 in the order of the nodes' numbers, and these numbers in `numbers`.
LayerGraph layer_graph(const Graph& graph, std::vector<int>& numbers, std::string_view source) {
  LayerGraph layers;
  std::map<int, int> vertex_of;
  for (const auto& [number, node] : graph.nodes) {
    vertex_of[number] = static_cast<int>(numbers.size());
    numbers.push_back(number);
    layers.output_bytes.push_back(node.activation_bytes);
  }
  for (const auto& [from, to] : graph.edges) {
    for (const int end : {from, to})
      if (!vertex_of.contains(end))
        throw InvalidInput(std::string(source), "must have edges between its nodes", fmt::format("node{}", end));
    layers.edges.emplace_back(vertex_of[from], vertex_of[to]);
  }
  return layers;
}

/// Throws InvalidInput unless all members of the JSON object are named by numbers, as Sailor's micro-batch sizes are.
void require_table_of_layers(std::string_view text, std::string_view source) {
  const foreign::File file(text, source);
  const auto is_number = [](const std::string& name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const char* const rule =
      "must have \"nodes\" and \"edges\" (a graph of Piper) or the times of layers by micro-batch size (a table of "
      "Sailor)";
  const auto members = file.root().members();
  if (members.empty()) throw InvalidInput(std::string(source), rule, "empty");
  for (const auto& [name, value] : members)
    if (!is_number(name))
      throw InvalidInput(std::string(source), rule, fmt::format("a file with \"{}\"", name.substr(0, 40)));
}

}  // namespace

Profile import_profile(std::string_view text, std::string_view source, const ImportOptions& options) {
  constexpr const char* kDeviceType = "imported";
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  if (is_json && !foreign::File(text, source).root().has("nodes")) {
    require_table_of_layers(text, source);
    return import_sailor(text, source, options);
  }
  if (first != std::string_view::npos && text[first] >= '0' && text[first] <= '9')
    return import_block_table(text, source, options);
  const Graph graph = is_json ? read_piper(text, source) : GraphText(text, source).read();
  if (graph.nodes.size() < 2)
    throw InvalidInput(std::string(source), "must have at least two nodes", std::to_string(graph.nodes.size()));
  std::vector<int> numbers;
  const LayerGraph layers = layer_graph(graph, numbers, source);
  std::vector<int> order = chain_order(layers);
  if (order.empty())
    throw InvalidInput(std::string(source), "must have no cycle",
                       fmt::format("a graph of {} nodes with one", numbers.size()));
  const std::vector<double> crossing = cut_bytes(layers, order);
  for (int& vertex : order) vertex = numbers[vertex];
  const double measured = is_json ? 1 : options.measured_samples;

  Profile profile;
  profile.machine = fmt::format("imported from {}, not measured here", source);
  profile.model = {.name = std::string(source), .hidden_size = 1, .layers = {}, .edges = {}};
  const int n = static_cast<int>(order.size());
  for (int i = 0; i < n; ++i) {
    const Node& node = graph.nodes.at(order[i]);
    const std::string place = fmt::format("{}: node{}", source, order[i]);
    const LayerKind kind = i == 0 ? LayerKind::embedding : i + 1 == n ? LayerKind::head : LayerKind::layer;
    profile.model.layers.push_back({.name = fmt::format("node{} {}", order[i], node.name),
                                    .kind = kind,
                                    .block = kind == LayerKind::layer ? std::optional(i - 1) : std::nullopt,
                                    .parameter_count = rounded(node.parameter_bytes / 4, place)});
    if (i > 0) profile.model.edges.push_back({i - 1, i});
    for (int size = 1;; size = std::min(2 * size, options.global_batch_size)) {
      const auto scaled = [&](double amount) { return rounded(amount * size / measured, place); };
      const double weight_share = node.parameter_bytes > 0 ? 0.5 : 0;
      profile.measurements.push_back({.key = {.layer = i, .device_type = kDeviceType, .micro_batch_size = size},
                                      .cost = {.forward_ns = scaled(node.forward_ns),
                                               .input_gradient_ns = scaled((1 - weight_share) * node.backward_ns),
                                               .weight_gradient_ns = scaled(weight_share * node.backward_ns),
                                               .frozen_forward_ns = scaled(node.forward_ns),
                                               .output_activation_bytes = scaled(crossing[i]),
                                               .saved_activation_bytes = scaled(node.activation_bytes),
                                               .workspace_bytes = 0}});
      if (size == options.global_batch_size) break;
    }
    profile.updates.push_back({.layer = i, .device_type = kDeviceType, .optimizer = Optimizer::kAdamW, .update_ns = 0});
  }
  profile.workload = Workload{.name = std::string(source),
                              .num_samples = options.num_samples,
                              .tokens = 1,
                              .longest_tokens = 1,
                              .global_batch_size = options.global_batch_size};
  return profile;
}

}  // namespace frostpipe
