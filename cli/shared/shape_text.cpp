#include "cli/shared/shape_text.h"

#include <fmt/format.h>

#include <algorithm>

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

std::string frozen_unit(const std::vector<RunSummary>& runs) {
  if (std::ranges::all_of(runs, is_net)) return "layers";
  return std::ranges::any_of(runs, is_net) ? "blocks or layers" : "blocks";
}

}  // namespace frostpipe
