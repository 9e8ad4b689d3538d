#include "cli/plans/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "cli/shared/model_figures.h"
#include "cli/shared/one_process_text.h"
#include "cli/shared/report_words.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/recompute.h"
#include "plan/stages.h"
#include "planner/published/timely_freeze.h"
#include "simulator/predict_phases.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

std::string memory_limits(const Cluster& cluster, bool memory_limited) {
  std::vector<std::string> cells;
  for (const Device& device : cluster.devices)
    cells.push_back(device.memory_limit_bytes ? in_mebibytes(*device.memory_limit_bytes) : "none");
  return side_by_side(cells) + (memory_limited ? "" : " (not applied to this plan)");
}

/// Returns the device types of the pipeline ranks in their order, such as "V100 / A100"; "A100+V100" if the replicas of
/// a rank are of several types.
std::string device_types(const ParallelLayout& layout, const Cluster& cluster) {
  std::vector<std::string> of_ranks;
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    std::set<std::string> types;
    for (int replica = 0; replica < layout.data_parallel_size; ++replica)
      types.insert(cluster.devices[rank_of(layout, pipeline_rank, replica)].type);
    of_ranks.push_back(fmt::format("{}", fmt::join(types, "+")));
  }
  return fmt::format("{}", fmt::join(of_ranks, " / "));
}

std::string phases_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"from step", right},
                                        {"frozen", right},
                                        {shape_heading(plan.phases), right},
                                        {"partition", left},
                                        {"micro-batches", right},
                                        {"schedule", left},
                                        {"cache", left},
                                        {"iteration [ms]", right},
                                        {"samples/s", right},
                                        {"memory per rank [MiB]", left},
                                        {"change [ms]", right}};
  constexpr int kStages = 9;  // the column for ranks that are of several types, or not in the order of stages
  const bool names_stages = names_stages_of_ranks(plan.phases, cluster);
  if (names_stages) columns.insert(columns.begin() + kStages, {"stages per rank", left});
  constexpr int kTokens = 9;  // the column for models of text
  const bool reads_text = profile.model.vocab_size > 0;
  if (reads_text) columns.insert(columns.begin() + kTokens, {"tokens/s", right});
  const bool is_mixed = has_several_types(cluster);
  constexpr int kDevices = 4;  // the column for clusters of several types
  if (is_mixed) columns.insert(columns.begin() + kDevices, {"devices", left});
  Table table(columns);
  for (const Phase& phase : plan.phases) {
    const PhasePrediction& predicted = phase.predicted;
    std::vector<std::string> row = {
        std::to_string(phase.from_step),
        std::to_string(frozen_blocks(profile.model, phase.first_trainable_layer)),
        shape_text(phase),
        to_brief_string(phase.partition),
        micro_batches_text(phase, plan.global_batch_size),
        schedule_text(phase) + recompute_note(phase.recompute),
        to_string(phase.cache, phase.first_trainable_layer),
        in_milliseconds(predicted.iteration_ns),
        fmt::format("{:.1f}", 1e9 * plan.global_batch_size /
                                  static_cast<double>(std::max<Nanoseconds>(1, predicted.iteration_ns))),
        in_mebibytes(predicted.peak_memory_bytes),
        in_milliseconds(predicted.transformation_ns)};
    if (names_stages) row.insert(row.begin() + kStages, stages_per_rank_text(phase, plan.world_size));
    if (reads_text)
      row.insert(row.begin() + kTokens,
                 fmt::format("{:.0f}", tokens_per_second(phase, plan.global_batch_size, profile).value()));
    if (is_mixed) row.insert(row.begin() + kDevices, device_types(phase.layout, cluster));
    table.add_row(row);
  }
  return table.to_string();
}

std::string delay_sentence(const TrainingPlan& plan) {
  const auto delays = [](const Phase& phase) { return weight_delay(phase) > 0; };
  const auto phase = std::ranges::find_if(plan.phases, delays);
  if (phase == plan.phases.end()) return "";
  return fmt::format(
      "{} changes what the optimizer does: an iteration's gradients are those at the weights from before the last "
      "update\n",
      phase->schedule);
}

}  // namespace

std::string plan_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster, const std::string& path,
                      bool is_fastest) {
  const Nanoseconds total = predicted_run_ns(plan);
  const double samples = static_cast<double>(plan.num_steps) * plan.global_batch_size;
  return fmt::format(
      "{}: {} plan of {} steps of mini-batch {} on {}, {} tokens per sample, in {}\n\n{}\n"
      "{}memory limit per rank [MiB]: {}\npredicted training time: {}, {:.1f} samples/s{}\n{}{}{}{}",
      path, to_string(plan.method), plan.num_steps, plan.global_batch_size,
      ranks_text(plan.world_size, plan.threads_per_rank), plan.phases.front().tokens, to_string(plan.dtype),
      phases_text(plan, profile, cluster), device_line(cluster), memory_limits(cluster, plan.memory_limited),
      format_duration(total), total > 0 ? samples * 1e9 / static_cast<double>(total) : 0.0,
      profile.quick ? "; roughly, since the profile is a quick one" : "", model_text(plan, profile, cluster),
      one_process_line(plan, is_fastest),
      plan.frozen_dtype ? fmt::format("frozen layers compute in {}\n", to_string(*plan.frozen_dtype)) : "",
      delay_sentence(plan));
}

std::string deadline_text(const DeadlinePlan& plan, const std::string& deadline) {
  const auto first = std::find_if(plan.plan.phases.begin(), plan.plan.phases.end(),
                                  [](const Phase& phase) { return phase.first_trainable_layer > 0; });
  if (first == plan.plan.phases.end()) return fmt::format("within {} without freezing anything\n", deadline);
  return fmt::format(
      "within {} where the first freeze waits until step {} ({:.0f} % of the run, {} steps {} than forecast); {:.0f} % "
      "of all updates of blocks are still made\n",
      deadline, first->from_step, 100.0 * first->from_step / plan.plan.num_steps, std::abs(plan.delay_steps),
      plan.delay_steps >= 0 ? "later" : "earlier", 100 * plan.trained_share);
}

std::string timely_freeze_text(const Phase& phase, const PlanningProblem& problem) {
  const TimelyFreeze none = timely_freeze_of(phase, problem, 0),
                     some = timely_freeze_of(phase, problem, problem.options.freeze.alpha);
  using enum Table::Align;
  Table table({{"stage", right}, {"mean ratio", right}, {"by micro-batch", left}});
  for (std::size_t stage = 0; stage < some.ratio.size(); ++stage) {
    double sum = 0;
    std::string each;
    for (const double one : some.ratio[stage]) {
      sum += one;
      each += fmt::format("{}{:.2f}", each.empty() ? "" : " ", one);
    }
    constexpr std::size_t kLongest = 60;
    if (each.size() > kLongest) each = each.substr(0, kLongest) + " ...";
    table.add_row(
        {std::to_string(stage), fmt::format("{:.2f}", sum / static_cast<double>(some.ratio[stage].size())), each});
  }
  return fmt::format(
      "\nweight gradients left out by TimelyFreeze's linear program, at most {:.0f} % of a stage's:\n{}the pipeline "
      "takes {} instead of {} ({:.2f} times as fast), before reductions "
      "and updates; train does not leave gradients out\n",
      100 * problem.options.freeze.alpha, table.to_string(), format_duration(some.makespan_ns),
      format_duration(none.makespan_ns),
      static_cast<double>(none.makespan_ns) / static_cast<double>(std::max<Nanoseconds>(1, some.makespan_ns)));
}

}  // namespace frostpipe
