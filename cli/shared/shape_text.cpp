#include "cli/shared/shape_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/shared/table.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

std::string text_of(int stages, int replicas, int tensor_ranks, std::string_view times) {
  std::string text = fmt::format("{}{}{}", stages, times, replicas);
  if (tensor_ranks > 1) text += fmt::format("{}{}", times, tensor_ranks);
  return text;
}

bool is_net(const RunSummary& run) { return run.net.has_value(); }

std::string heading_of(bool has_tensor_ranks, std::string_view times) {
  return fmt::format("stages{}replicas", times) + (has_tensor_ranks ? fmt::format("{}tensor ranks", times) : "");
}

}  // namespace

std::string shape_text(const Phase& phase) {
  return text_of(num_stages(phase), phase.layout.data_parallel_size, phase.layout.tensor_parallel_size, " x ");
}

std::string shape_text(const PhaseSummary& phase, std::string_view times) {
  if (phase.devices > 0) return fmt::format("{} device{}", phase.devices, phase.devices == 1 ? "" : "s");
  return text_of(num_stages(phase), phase.replicas, phase.tensor_ranks, times);
}

std::string shape_heading(const std::vector<Phase>& phases) {
  return heading_of(
      std::ranges::any_of(phases, [](const Phase& phase) { return phase.layout.tensor_parallel_size > 1; }), " x ");
}

std::string shape_heading(const std::vector<RunSummary>& runs, std::string_view times) {
  const auto has_tensor_ranks = [](const RunSummary& run) {
    return std::ranges::any_of(run.phases, [](const PhaseSummary& phase) { return phase.tensor_ranks > 1; });
  };
  if (std::ranges::all_of(runs, is_net)) return "devices";
  return heading_of(std::ranges::any_of(runs, has_tensor_ranks), times);
}

std::vector<std::vector<int>> stages_of_ranks(const Phase& phase, int world_size) {
  const std::vector<std::vector<int>> of_pipeline_ranks = stages_on_each(phase);
  std::vector<std::vector<int>> stages(world_size);
  for (int rank = 0; rank < world_size; ++rank)
    if (const auto at = find_coordinate(phase.layout, rank)) stages[rank] = of_pipeline_ranks[at->pipeline_rank];
  return stages;
}

bool has_several_types(const Cluster& cluster) {
  return std::ranges::any_of(cluster.devices,
                             [&](const Device& device) { return device.type != cluster.devices.front().type; });
}

bool names_stages_of_ranks(const std::vector<Phase>& phases, const Cluster& cluster) {
  return has_several_types(cluster) ||
         std::ranges::any_of(phases, [](const Phase& phase) { return !phase.layout.placement.empty(); });
}

std::string stages_per_rank_text(const Phase& phase, int world_size) {
  std::vector<std::string> cells;
  for (const std::vector<int>& stages : stages_of_ranks(phase, world_size))
    cells.push_back(stages.empty() ? "-" : fmt::format("{}", fmt::join(stages, "+")));
  constexpr std::size_t kLongest = 120;  // characters
  const std::string text = side_by_side(cells);
  return text.size() <= kLongest ? text : fmt::format("of {} ranks: see simulate --format json", world_size);
}

std::string device_line(const Cluster& cluster) {
  if (!has_several_types(cluster)) return "";
  std::vector<std::string> types;
  for (const Device& device : cluster.devices) types.push_back(device.type);
  return fmt::format("device per rank: {}\n", side_by_side(types));
}

std::string frozen_unit(const std::vector<RunSummary>& runs) {
  if (std::ranges::all_of(runs, is_net)) return "layers";
  return std::ranges::any_of(runs, is_net) ? "blocks or layers" : "blocks";
}

}  // namespace frostpipe
