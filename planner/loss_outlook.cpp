#include "planner/loss_outlook.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/memory.h"
#include "plan/reconfiguration.h"
#include "plan/stages.h"
#include "planner/run_replanner.h"
#include "planner/run_windows.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

/// Returns the rerouted phase with its predictions, if it fits.
std::variant<Phase, CannotReroute> priced(const PlanningProblem& problem, const ReplanRequest& request) {
  if (problem.options.method == PlanMethod::pipetransformer_published)
    return CannotReroute{"the method pipetransformer-published plans whole pipelines only"};
  auto result = rerouted(request.current, request.logical_ranks, problem.profile.model);
  auto* const phase = std::get_if<Phase>(&result);
  if (!phase) return result;
  phase->from_step = request.from_step;
  const StepSettings settings = step_settings(problem.options);
  const std::vector<RankMemory> memory = memory_of(*phase, settings, problem.profile, problem.cluster);
  const std::string excess =
      problem.options.ignore_memory_limit ? "" : what_does_not_fit(*phase, memory, problem.cluster);
  if (!excess.empty()) return CannotReroute{excess};
  phase->predicted.iteration_ns = simulated_iteration_ns(*phase, settings, problem.profile, problem.cluster);
  for (int rank = 0; rank < static_cast<int>(problem.cluster.devices.size()); ++rank) {
    const auto coordinate = find_coordinate(phase->layout, rank);
    phase->predicted.peak_memory_bytes.push_back(coordinate ? memory[coordinate->pipeline_rank].total() : 0);
  }
  return result;
}

Nanoseconds change_ns(const PlanningProblem& problem, const Phase& before, const Phase& after) {
  const PlanOptions& options = problem.options;
  return reconfiguration_ns(diff(before, after, problem.profile.model, options.optimizer, options.dtype),
                            problem.cluster);
}

/// Returns the time of phases that begin at the outlook's from_step, up to until_step and including the reconfiguration
/// there. `held` is the phase whose layers the survivors hold. Rebuilding the process groups at from_step is not
/// counted, since every choice needs it.
Nanoseconds time_until(int until_step, const std::vector<Phase>& phases, const Phase& held,
                       const PlanningProblem& problem) {
  Reconfiguration moves =
      diff(held, phases.front(), problem.profile.model, problem.options.optimizer, problem.options.dtype);
  moves.regroup = false;
  Nanoseconds total = reconfiguration_ns(moves, problem.cluster);
  for (std::size_t i = 0; i < phases.size() && phases[i].from_step <= until_step; ++i) {
    const int end = i + 1 < phases.size() ? std::min(phases[i + 1].from_step, until_step) : until_step;
    total += (end - phases[i].from_step) * phases[i].predicted.iteration_ns;
    if (i > 0) total += phases[i].predicted.transformation_ns;
  }
  return total;
}

/// Returns "2 x 3" for stages x replicas; "2 x 3 x 4" if 4 tensor ranks share the layers of each stage.
std::string layout_text(const Phase& phase) {
  const int stages = num_stages(phase), replicas = phase.layout.data_parallel_size;
  const int tensor_ranks = phase.layout.tensor_parallel_size;
  return tensor_ranks == 1 ? fmt::format("{} x {}", stages, replicas)
                           : fmt::format("{} x {} x {}", stages, replicas, tensor_ranks);
}

std::string until_text(const LossOutlook& outlook, Nanoseconds iteration_ns, Nanoseconds total_ns) {
  const int steps = outlook.until_step - outlook.from_step;
  return fmt::format("{} step{} of {}, {}", steps, steps == 1 ? "" : "s", format_duration(iteration_ns),
                     format_duration(total_ns));
}

}  // namespace

LossOutlook look_at_loss(const PlanningProblem& problem, const ReplanRequest& request) {
  PlanOptions options = problem.options;
  options.tokens = request.current.tokens;
  if (request.forecast) options.forecast = request.forecast;
  const PlanningProblem asked{problem.profile, problem.cluster, options};
  const Model& model = problem.profile.model;
  const auto windows = windows_of(model, request.from_step, request.first_trainable_layer,
                                  forecast_after(request.from_step, model, options), options.num_steps);
  LossOutlook outlook{.from_step = request.from_step,
                      .until_step = std::max(request.from_step, windows.front().end_step),
                      .rerouted = priced(asked, request),
                      .after_rerouting = {},
                      .replanned = replan_after_loss(asked, request)};
  const auto* const rerouted = std::get_if<Phase>(&outlook.rerouted);
  const auto* const replanned = std::get_if<std::vector<Phase>>(&outlook.replanned);
  if (!rerouted) return outlook;
  if (replanned) outlook.replanned_ns = time_until(outlook.until_step, *replanned, *rerouted, asked);
  if (request.forecast && windows.size() > 1) {
    ReplanRequest later = request;
    later.from_step = windows[1].from_step;
    later.first_trainable_layer = windows[1].first_trainable_layer;
    auto phases = replan_after_loss(asked, later);
    if (auto* const found = std::get_if<std::vector<Phase>>(&phases)) {
      found->front().predicted.transformation_ns = change_ns(asked, *rerouted, found->front());
      outlook.after_rerouting = std::move(*found);
    } else {
      outlook.rerouted = CannotReroute{std::get<Infeasible>(phases).reason};
      return outlook;
    }
  }
  std::vector<Phase> all = {*rerouted};
  all.insert(all.end(), outlook.after_rerouting.begin(), outlook.after_rerouting.end());
  outlook.rerouted_ns = time_until(outlook.until_step, all, *rerouted, asked);
  return outlook;
}

bool reroutes(const LossOutlook& outlook) {
  if (std::holds_alternative<CannotReroute>(outlook.rerouted)) return false;
  return std::holds_alternative<Infeasible>(outlook.replanned) || outlook.rerouted_ns < outlook.replanned_ns;
}

std::variant<std::vector<Phase>, Infeasible> phases_after(const LossOutlook& outlook) {
  if (!reroutes(outlook)) return outlook.replanned;
  std::vector<Phase> phases = {std::get<Phase>(outlook.rerouted)};
  phases.insert(phases.end(), outlook.after_rerouting.begin(), outlook.after_rerouting.end());
  return phases;
}

std::string to_string(const LossOutlook& outlook) {
  const auto* const rerouted = std::get_if<Phase>(&outlook.rerouted);
  const auto* const replanned = std::get_if<std::vector<Phase>>(&outlook.replanned);
  const std::string other = rerouted ? until_text(outlook, rerouted->predicted.iteration_ns, outlook.rerouted_ns) : "";
  if (!replanned) {
    const std::string& reason = std::get<Infeasible>(outlook.replanned).reason;
    return rerouted ? fmt::format("rerouted until step {}: {}; no other layout: {}", outlook.until_step, other, reason)
                    : fmt::format("no layout: {}; not rerouted: {}", reason,
                                  std::get<CannotReroute>(outlook.rerouted).reason);
  }
  const Phase& planned = replanned->front();
  if (!rerouted)
    return fmt::format("a new layout, {}; not rerouted: {}", layout_text(planned),
                       std::get<CannotReroute>(outlook.rerouted).reason);
  const std::string one = until_text(outlook, planned.predicted.iteration_ns, outlook.replanned_ns);
  if (reroutes(outlook))
    return fmt::format("rerouted until step {}: {}; a new layout, {}: {}", outlook.until_step, other,
                       layout_text(planned), one);
  return fmt::format("a new layout, {}, until step {}: {}; rerouted: {}", layout_text(planned), outlook.until_step, one,
                     other);
}

}  // namespace frostpipe
