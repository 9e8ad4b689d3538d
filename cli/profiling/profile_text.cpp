#include "cli/profiling/profile_text.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "cli/shared/report_words.h"
#include "cli/shared/table.h"
#include "profiles/link_fit.h"

namespace frostpipe {
namespace {

/// The mean time of the layers of one kind.
class MeanTime {
 public:
  void add(Nanoseconds time_ns) {
    sum_ns_ += time_ns;
    ++count_;
  }
  std::string text() const { return count_ > 0 ? in_milliseconds(sum_ns_ / count_) : "-"; }

 private:
  Nanoseconds sum_ns_ = 0;
  int count_ = 0;
};

/// Shows a row for each device, length of context and sample, kind of layer and pass, with a column for each
/// micro-batch size.
std::string layers_text(const Profile& profile) {
  const std::string works[] = {
      "forward", "backward",
      "frozen forward" + (profile.frozen_dtype ? fmt::format(" in {}", to_string(*profile.frozen_dtype)) : "")};
  std::map<std::tuple<std::string, int, int, LayerKind, int>, std::map<int, MeanTime>> rows;
  std::set<int> sizes;
  for (const Measurement& measurement : profile.measurements) {
    if (measurement.key.tensor_parallel_size != profile.measurements.front().key.tensor_parallel_size) continue;
    const LayerCost& cost = measurement.cost;
    const LayerKind kind = profile.model.layers.at(measurement.key.layer).kind;
    const Nanoseconds times[] = {cost.forward_ns, cost.input_gradient_ns + cost.weight_gradient_ns,
                                 cost.frozen_forward_ns};
    const int size = measurement.key.micro_batch_size;
    sizes.insert(size);
    for (int work = 0; work < 3; ++work)
      rows[{measurement.key.device_type, measurement.key.context_tokens, measurement.key.tokens, kind, work}][size].add(
          times[work]);
  }
  using enum Table::Align;
  std::vector<Table::Column> columns = {
      {"device", left}, {"tokens", right}, {"layer", left}, {"ms per layer at micro-batch size", left}};
  for (const int size : sizes) columns.push_back({std::to_string(size), right});
  Table table(columns);
  for (auto& [key, times] : rows) {
    const auto& [device, context, tokens, kind, work] = key;
    const std::string length = context > 0 ? fmt::format("{} after {}", tokens, context) : std::to_string(tokens);
    std::vector<std::string> cells = {device, length, std::string(to_string(kind)), works[work]};
    for (const int size : sizes) cells.push_back(times[size].text());
    table.add_row(cells);
  }
  return table.to_string();
}

std::string updates_text(const Profile& profile) {
  std::map<std::tuple<std::string, LayerKind, Optimizer>, std::pair<int, Nanoseconds>> updates;
  for (const UpdateMeasurement& update : profile.updates) {
    auto& [layers, sum] = updates[{update.device_type, profile.model.layers.at(update.layer).kind, update.optimizer}];
    ++layers;
    sum += update.update_ns;
  }
  using enum Table::Align;
  Table table({{"device", left}, {"layer", left}, {"optimizer", left}, {"update [ms]", right}});
  for (const auto& [key, value] : updates) {
    const auto& [device, kind, optimizer] = key;
    table.add_row({device, std::string(to_string(kind)), std::string(to_string(optimizer)),
                   in_milliseconds(value.second / value.first)});
  }
  return table.to_string();
}

std::string text_of(const LinkClass& links) {
  const bool unsteady = is_unsteady(links.point_to_point) || is_unsteady(links.collective);
  return fmt::format(":\n  messages     {}\n  collectives  {}\n{}", to_text(links.point_to_point),
                     to_text(links.collective),
                     unsteady ? "the links are unsteady: the middle half of what was measured spans more than a factor "
                                "of 2; measure again when the machine is quiet\n"
                              : "");
}

std::string links_text(const Cluster& cluster) {
  const int ranks = static_cast<int>(cluster.devices.size()), nodes = num_nodes(cluster);
  std::string text;
  if (nodes == 1 || ranks > nodes)
    text += fmt::format("{} ranks; between two of one node{}", ranks, text_of(cluster.intra_node));
  if (nodes > 1) text += fmt::format("{} nodes; between two of different nodes{}", nodes, text_of(cluster.inter_node));
  for (const NodePair& pair : cluster.node_pairs)
    text += fmt::format("but between nodes {} and {}{}", pair.node, pair.other_node, text_of(pair.links));
  return text;
}

}  // namespace

std::string profile_text(const Profile& profile, const std::optional<Cluster>& cluster) {
  std::string text =
      fmt::format("{}: {} layers, {}; times are means over the layers of one kind\n\n{}\n{}", profile.model.name,
                  profile.model.layers.size(), profile.machine, layers_text(profile), updates_text(profile));
  if (profile.workload) {
    text +=
        fmt::format("\ndata: {}, {}, {:.1f} tokens on average (longest {}) in mini-batches of {}\n",
                    profile.workload->name, plural(profile.workload->num_samples, "training sample"),
                    profile.workload->tokens, profile.workload->longest_tokens, profile.workload->global_batch_size);
  }
  if (profile.quick) text += "\nquick: few sizes, measured once each; what is predicted from this profile is rough\n";
  return text + "\n" +
         (cluster ? links_text(*cluster)
                  : "links: left out; --cluster FILE writes the file of ranks and links that plan needs\n");
}

}  // namespace frostpipe
