#include "cli/plans/plan_loss.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "planner/loss_outlook.h"
#include "planner/memory_reserve.h"
#include "planner/run_replanner.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

struct LossInPhase {
  Nanoseconds undisturbed_ns = 0;  // time of an iteration without the loss
  LossOutlook outlook;
};

ReplanRequest request_of(const TrainingPlan& plan, std::size_t phase, const Model& model, int lost) {
  ReplanRequest request{.current = plan.phases[phase],
                        .first_trainable_layer = plan.phases[phase].first_trainable_layer,
                        .from_step = plan.phases[phase].from_step,
                        .logical_ranks = {},
                        .layout_is_lost = true,
                        .forecast = std::vector<FreezeEvent>{}};
  for (int rank = 0; rank < plan.world_size; ++rank)
    if (rank != lost) request.logical_ranks.push_back(rank);
  for (std::size_t i = phase + 1; i < plan.phases.size(); ++i)
    request.forecast->push_back({plan.phases[i].from_step, frozen_blocks(model, plan.phases[i].first_trainable_layer)});
  return request;
}

std::string losses_text(const std::vector<LossInPhase>& losses, int lost) {
  if (losses.empty()) return fmt::format("no phase uses rank {}: nothing changes\n", lost);
  using enum Table::Align;
  Table table({{"from step", right},
               {"until step", right},
               {"undisturbed [ms]", right},
               {"rerouted [ms]", right},
               {"new layout", right},
               {"in it [ms]", right}});
  std::string sentences;
  for (const auto& [undisturbed_ns, outlook] : losses) {
    const auto* const rerouted = std::get_if<Phase>(&outlook.rerouted);
    const auto* const replanned = std::get_if<std::vector<Phase>>(&outlook.replanned);
    table.add_row({std::to_string(outlook.from_step), std::to_string(outlook.until_step),
                   in_milliseconds(undisturbed_ns), rerouted ? in_milliseconds(rerouted->predicted.iteration_ns) : "-",
                   replanned ? shape_text(replanned->front()) : "-",
                   replanned ? in_milliseconds(replanned->front().predicted.iteration_ns) : "-"});
    sentences += fmt::format("rank {} lost at step {}: {}\n", lost, outlook.from_step, to_string(outlook));
  }
  return table.to_string() + "\n" + sentences;
}

std::string losses_json(const std::vector<LossInPhase>& losses, int lost) {
  nlohmann::ordered_json json = {
      {"format", "frostpipe.loss"}, {"version", 1}, {"lost_rank", lost}, {"phases", nlohmann::ordered_json::array()}};
  for (const auto& [undisturbed_ns, outlook] : losses) {
    nlohmann::ordered_json phase = {{"from_step", outlook.from_step},
                                    {"until_step", outlook.until_step},
                                    {"undisturbed_iteration_ns", undisturbed_ns}};
    if (const auto* const rerouted = std::get_if<Phase>(&outlook.rerouted)) {
      phase["rerouted_iteration_ns"] = rerouted->predicted.iteration_ns;
      phase["rerouted_ns"] = outlook.rerouted_ns;
      phase["rerouted_peak_memory_bytes"] = rerouted->predicted.peak_memory_bytes;
    }
    if (const auto* const replanned = std::get_if<std::vector<Phase>>(&outlook.replanned)) {
      phase["replanned_iteration_ns"] = replanned->front().predicted.iteration_ns;
      if (phase.contains("rerouted_ns")) phase["replanned_ns"] = outlook.replanned_ns;
    }
    phase["reroutes"] = reroutes(outlook);
    phase["choice"] = to_string(outlook);
    json["phases"].push_back(std::move(phase));
  }
  return json_text(json, 2) + "\n";
}

}  // namespace

std::string simulate_loss(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster, int rank,
                          const std::string& format) {
  if (rank < 0 || rank >= plan.world_size)
    throw UsageError(fmt::format("--lose: must be a rank of the plan, below {}, is {}", plan.world_size, rank));
  Cluster left = with_memory_reserve(cluster, plan.memory_reserve);
  left.devices.resize(plan.world_size);
  left.devices.erase(left.devices.begin() + rank);
  const PlanOptions options = replan_options(plan, FreezeOptions{}, plan.epochs > 0 ? plan.num_steps / plan.epochs : 0);
  std::vector<LossInPhase> losses;
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    if (!find_coordinate(phase.layout, rank)) continue;
    losses.push_back({simulated_iteration_ns(phase, step_settings(plan), profile, cluster),
                      look_at_loss({profile, left, options}, request_of(plan, i, profile.model, rank))});
  }
  return format == "json" ? losses_json(losses, rank) : losses_text(losses, rank);
}

}  // namespace frostpipe
