#include "cli/report/simulation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "cli/shared/model_figures.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/recompute.h"
#include "plan/stages.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

int last_step(const TrainingPlan& plan, std::size_t phase) {
  return phase + 1 < plan.phases.size() ? plan.phases[phase + 1].from_step : plan.num_steps;
}

double run_samples_per_second(const TrainingPlan& plan) {
  const Nanoseconds total = predicted_run_ns(plan);
  return total > 0 ? 1e9 * plan.num_steps * plan.global_batch_size / static_cast<double>(total) : 0;
}

/// Shows the busy time of the first of t tensor ranks only, because all of them do the same.
std::string busy_text(const std::vector<Nanoseconds>& busy_ns, const ParallelLayout& layout) {
  std::vector<std::string> cells;
  for (int rank = 0; rank < static_cast<int>(busy_ns.size()); ++rank) {
    const auto coordinate = find_coordinate(layout, rank);
    if (coordinate && rank_of(layout, coordinate->pipeline_rank, coordinate->replica) != rank) continue;
    cells.push_back(in_milliseconds(busy_ns[rank]));
  }
  return side_by_side(cells);
}

/// Counts the hours of all ranks, idle ones too.
double device_hours(const TrainingPlan& plan) {
  return 1e-9 * static_cast<double>(predicted_run_ns(plan)) * plan.world_size / 3600;
}

struct MemoryPart {
  const char* heading;
  const char* key;
  Bytes RankMemory::*bytes;
};

constexpr MemoryPart kMemoryParts[] = {{"weights", "weights_bytes", &RankMemory::weights},
                                       {"older weights", "older_weights_bytes", &RankMemory::older_weights},
                                       {"gradients", "gradients_bytes", &RankMemory::gradients},
                                       {"optimizer state", "optimizer_state_bytes", &RankMemory::optimizer_state},
                                       {"saved activations", "stash_bytes", &RankMemory::saved_activations},
                                       {"workspace", "workspace_bytes", &RankMemory::workspace},
                                       {"exchange", "exchange_bytes", &RankMemory::exchange},
                                       {"cache", "cache_bytes", &RankMemory::cache},
                                       {"sent ahead", "sent_ahead_bytes", &RankMemory::sent_ahead}};

/// Shows the parts of the peak memory of each pipeline rank.
std::string memory_text(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"from step", right}, {"pipeline rank", right}};
  // Columns that few plans have are left out where they are 0.
  const auto is_left_out = [&](const MemoryPart& part) {
    const bool is_rare = part.bytes == &RankMemory::older_weights || part.bytes == &RankMemory::sent_ahead;
    return is_rare && std::ranges::none_of(phases, [&](const PredictedPhase& phase) {
             return std::ranges::any_of(phase.memory, [&](const RankMemory& memory) { return memory.*part.bytes > 0; });
           });
  };
  std::vector<MemoryPart> parts(std::begin(kMemoryParts), std::end(kMemoryParts));
  std::erase_if(parts, is_left_out);
  for (const MemoryPart& part : parts) columns.push_back({fmt::format("{} [MiB]", part.heading), right});
  columns.push_back({"peak [MiB]", right});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < phases.size(); ++i) {
    for (std::size_t pipeline_rank = 0; pipeline_rank < phases[i].memory.size(); ++pipeline_rank) {
      const RankMemory& memory = phases[i].memory[pipeline_rank];
      std::vector<std::string> cells = {std::to_string(plan.phases[i].from_step), std::to_string(pipeline_rank)};
      for (const MemoryPart& part : parts) cells.push_back(in_mebibytes(memory.*part.bytes));
      cells.push_back(in_mebibytes(memory.total()));
      table.add_row(std::move(cells));
    }
  }
  return table.to_string();
}

nlohmann::ordered_json memory_json(const std::vector<RankMemory>& per_pipeline_rank) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RankMemory& memory : per_pipeline_rank) {
    nlohmann::ordered_json parts;
    for (const MemoryPart& part : kMemoryParts) parts[part.key] = memory.*part.bytes;
    json.push_back(std::move(parts));
  }
  return json;
}

/// Returns the idle part of ranks x iteration_ns, by the idle part of ranks x makespan_ns.
double steady_bubble_fraction(const IterationSummary& summary) {
  const double busy = (1 - summary.bubble_fraction) * static_cast<double>(summary.makespan_ns);
  return std::max(0.0, 1 - busy / static_cast<double>(std::max<Nanoseconds>(1, summary.iteration_ns)));
}

std::string times_text(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Profile& profile) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {
      {"from step", right},     {"steps", right},   {"frozen", right},         {shape_heading(plan.phases), right},
      {"micro-batches", right}, {"schedule", left}, {"iteration [ms]", right}, {"makespan [ms]", right},
      {"samples/s", right}};
  if (profile.model.vocab_size > 0) columns.push_back({"tokens/s", right});
  columns.push_back({"change [ms]", right});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const IterationSummary& summary = phases[i].simulated.summary;
    std::vector<std::string> row = {
        std::to_string(phase.from_step),
        std::to_string(last_step(plan, i) - phase.from_step),
        std::to_string(frozen_blocks(profile.model, phase.first_trainable_layer)),
        shape_text(phase),
        micro_batches_text(phase, plan.global_batch_size),
        schedule_text(phase) + recompute_note(phase.recompute),
        in_milliseconds(summary.iteration_ns),
        in_milliseconds(summary.makespan_ns),
        fmt::format("{:.1f}", 1e9 * plan.global_batch_size /
                                  static_cast<double>(std::max<Nanoseconds>(1, summary.iteration_ns)))};
    if (const auto rate = tokens_per_second(phase, plan.global_batch_size, profile))
      row.push_back(fmt::format("{:.0f}", *rate));
    row.push_back(in_milliseconds(phases[i].transformation_ns));
    table.add_row(std::move(row));
  }
  return table.to_string();
}

std::string per_rank_text(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Cluster& cluster) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {
      {"from step", right}, {"bubble_fraction", right}, {"steady_bubble_fraction", right}, {"bubble_overhead", right}};
  const bool names_stages = names_stages_of_ranks(plan.phases, cluster);
  if (names_stages) columns.push_back({"stages per rank", left});
  columns.push_back({"busy per rank [ms]", left});
  columns.push_back({names_stages ? "peak in flight by pipeline rank" : "peak in flight", left});
  columns.push_back({"memory per rank [MiB]", left});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const IterationSummary& summary = phases[i].simulated.summary;
    std::vector<std::string> row = {std::to_string(phase.from_step), fmt::format("{:.3f}", summary.bubble_fraction),
                                    fmt::format("{:.3f}", steady_bubble_fraction(summary)),
                                    fmt::format("{:.3f}", summary.bubble_overhead)};
    if (names_stages) row.push_back(stages_per_rank_text(phase, plan.world_size));
    row.push_back(busy_text(summary.busy_ns, phase.layout));
    row.push_back(in_micro_batches(summary.peak_in_flight));
    row.push_back(in_mebibytes(phases[i].peak_memory_bytes));
    table.add_row(std::move(row));
  }
  return table.to_string() + device_line(cluster);
}

}  // namespace

std::string simulation_text(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Profile& profile,
                            const Cluster& cluster, const std::vector<std::string>& violations) {
  std::string text = fmt::format("{}\n{}\n{}\n", times_text(plan, phases, profile),
                                 per_rank_text(plan, phases, cluster), memory_text(plan, phases));
  for (const std::string& sentence : violations) text += "does not fit: " + sentence + "\n";
  return text +
         fmt::format("predicted training time: {}, {:.1f} samples/s, {:.3g} device-hours on {} ranks\n",
                     format_duration(predicted_run_ns(plan)), run_samples_per_second(plan), device_hours(plan),
                     plan.world_size) +
         model_text(plan, profile, cluster);
}

std::string simulation_json(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Profile& profile,
                            const Cluster& cluster, const std::vector<std::string>& violations) {
  nlohmann::ordered_json json = {{"format", "frostpipe.simulation"},
                                 {"version", 2},
                                 {"method", to_string(plan.method)},
                                 {"num_steps", plan.num_steps},
                                 {"global_batch_size", plan.global_batch_size},
                                 {"predicted_run_ns", predicted_run_ns(plan)},
                                 {"samples_per_second", run_samples_per_second(plan)},
                                 {"device_hours", device_hours(plan)},
                                 {"does_not_fit", violations},
                                 {"phases", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const IterationSummary& summary = phases[i].simulated.summary;
    json["phases"].push_back({{"from_step", phase.from_step},
                              {"num_steps", last_step(plan, i) - phase.from_step},
                              {"frozen_blocks", frozen_blocks(profile.model, phase.first_trainable_layer)},
                              {"stages", num_stages(phase)},
                              {"replicas", phase.layout.data_parallel_size},
                              {"num_micro_batches", phase.num_micro_batches},
                              {"schedule", phase.schedule},
                              {"iteration_ns", summary.iteration_ns},
                              {"makespan_ns", summary.makespan_ns},
                              {"longest_rank_span_ns", summary.longest_rank_span_ns},
                              {"bubble_fraction", summary.bubble_fraction},
                              {"steady_bubble_fraction", steady_bubble_fraction(summary)},
                              {"bubble_overhead", summary.bubble_overhead},
                              {"busy_ns", summary.busy_ns},
                              {"stages_of_ranks", stages_of_ranks(phase, plan.world_size)},
                              {"peak_in_flight", summary.peak_in_flight},
                              {"peak_memory_bytes", phases[i].peak_memory_bytes},
                              {"memory_of_positions", memory_json(phases[i].memory)},
                              {"transformation_ns", phases[i].transformation_ns}});
    if (const auto rate = tokens_per_second(phase, plan.global_batch_size, profile))
      json["phases"].back()["tokens_per_second"] = *rate;
    if (phase.recompute) json["phases"].back()["recompute"] = to_string(*phase.recompute);
    if (phase.virtual_stages > 1) json["phases"].back()["virtual_stages"] = phase.virtual_stages;
    if (!phase.token_slices.empty()) json["phases"].back()["token_slices"] = phase.token_slices;
  }
  add_model_figures(json, plan, profile, cluster);
  return json_text(json, 2) + "\n";
}

}  // namespace frostpipe
