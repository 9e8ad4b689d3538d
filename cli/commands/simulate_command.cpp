#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/plans/phase_timelines.h"
#include "cli/plans/plan_files.h"
#include "cli/plans/plan_loss.h"
#include "cli/plans/plan_what_ifs.h"
#include "cli/report/memory_svg.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/recompute.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "simulator/predict_phases.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

struct SimulateOptions {
  std::string plan;
  std::string schedule_file;  // in place of the plan's schedules
  SourceOverrides sources;
  std::string timeline, memory;
  std::vector<std::string> sets;
  std::optional<int> lost_rank;
  std::string format;
};

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

/// Returns the memory curve of every rank that is used, phase by phase. The simulator computes that of tensor rank 0,
/// which holds for the other tensor ranks too.
std::vector<MemoryCurve> memory_curves(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases,
                                       const Profile& profile, const Cluster& cluster) {
  std::vector<MemoryCurve> curves;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const IterationSummary& summary = phases[i].simulated.summary;
    const std::vector<RankMemory> stages = memory_of_stages(phase, step_settings(plan), profile, cluster);
    for (int rank = 0; rank < plan.world_size; ++rank) {
      const auto coordinate = find_coordinate(phase.layout, rank);
      if (!coordinate) continue;
      curves.push_back(
          {.from_step = phase.from_step,
           .rank = rank,
           .iteration_ns = summary.makespan_ns,
           .limit_bytes = plan.memory_limited ? cluster.devices.at(rank).memory_limit_bytes : std::nullopt,
           .changes = memory_over_time(
               phases[i].simulated.timeline, rank_of(phase.layout, coordinate->pipeline_rank, coordinate->replica),
               phases[i].memory[coordinate->pipeline_rank], stages, tokens_of_slices(phase, longest_sample(phase)))});
    }
  }
  return curves;
}

std::string memory_file(const std::string& path, const std::vector<MemoryCurve>& curves) {
  return path.ends_with(".csv") ? memory_csv(curves) : memory_svg(curves);
}

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

std::string simulation_text(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Model& model,
                            const std::vector<std::string>& violations) {
  using enum Table::Align;
  Table times({{"from step", right},
               {"steps", right},
               {"frozen", right},
               {shape_heading(plan.phases), right},
               {"micro-batches", right},
               {"schedule", left},
               {"iteration [ms]", right},
               {"makespan [ms]", right},
               {"samples/s", right},
               {"change [ms]", right}});
  Table ranks({{"from step", right},
               {"bubble_fraction", right},
               {"steady_bubble_fraction", right},
               {"bubble_overhead", right},
               {"busy per rank [ms]", left},
               {"peak in flight", left},
               {"memory per rank [MiB]", left}});
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const IterationSummary& summary = phases[i].simulated.summary;
    times.add_row({std::to_string(phase.from_step), std::to_string(last_step(plan, i) - phase.from_step),
                   std::to_string(frozen_blocks(model, phase.first_trainable_layer)), shape_text(phase),
                   std::to_string(phase.num_micro_batches), schedule_text(phase) + recompute_note(phase.recompute),
                   in_milliseconds(summary.iteration_ns), in_milliseconds(summary.makespan_ns),
                   fmt::format("{:.1f}", 1e9 * plan.global_batch_size /
                                             static_cast<double>(std::max<Nanoseconds>(1, summary.iteration_ns))),
                   in_milliseconds(phases[i].transformation_ns)});
    ranks.add_row({std::to_string(phase.from_step), fmt::format("{:.3f}", summary.bubble_fraction),
                   fmt::format("{:.3f}", steady_bubble_fraction(summary)),
                   fmt::format("{:.3f}", summary.bubble_overhead), busy_text(summary.busy_ns, phase.layout),
                   in_micro_batches(summary.peak_in_flight), in_mebibytes(phases[i].peak_memory_bytes)});
  }
  std::string text = fmt::format("{}\n{}\n{}\n", times.to_string(), ranks.to_string(), memory_text(plan, phases));
  for (const std::string& sentence : violations) text += "does not fit: " + sentence + "\n";
  return text + fmt::format("predicted training time: {}, {:.1f} samples/s, {:.3g} device-hours on {} ranks\n",
                            format_duration(predicted_run_ns(plan)), run_samples_per_second(plan), device_hours(plan),
                            plan.world_size);
}

std::string simulation_json(const TrainingPlan& plan, const std::vector<PredictedPhase>& phases, const Model& model,
                            const std::vector<std::string>& violations) {
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
                              {"frozen_blocks", frozen_blocks(model, phase.first_trainable_layer)},
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
                              {"peak_in_flight", summary.peak_in_flight},
                              {"peak_memory_bytes", phases[i].peak_memory_bytes},
                              {"memory_of_positions", memory_json(phases[i].memory)},
                              {"transformation_ns", phases[i].transformation_ns}});
    if (phase.recompute) json["phases"].back()["recompute"] = to_string(*phase.recompute);
    if (phase.virtual_stages > 1) json["phases"].back()["virtual_stages"] = phase.virtual_stages;
    if (!phase.token_slices.empty()) json["phases"].back()["token_slices"] = phase.token_slices;
  }
  return json.dump(2) + "\n";
}

int run_simulate(const SimulateOptions& options) {
  const TrainingPlan given = load_plan_by_file(options.plan, options.schedule_file);
  const Profile profile = load_profile_of(given, options.plan, options.sources);
  require_split_backward(given.phases, profile, given, options.plan, options.sources);
  const Cluster cluster = load_cluster_of(given, options.plan, options.sources);
  if (!options.sets.empty() || options.lost_rank) {
    print_result(options.lost_rank ? simulate_loss(given, profile, cluster, *options.lost_rank, options.format)
                                   : simulate_plan_what_ifs(given, profile, cluster, options.sets, options.format));
    return 0;
  }
  const std::vector<PredictedPhase> phases = predict_phases(given, profile, cluster);
  const TrainingPlan plan = with_predictions(given, phases);
  if (!options.timeline.empty()) write_named_file(options.timeline, to_chrome_trace(timelines_in_a_row(plan, phases)));
  const std::vector<MemoryCurve> curves = memory_curves(plan, phases, profile, cluster);
  if (!options.memory.empty()) write_named_file(options.memory, memory_file(options.memory, curves));
  print_result(options.format == "json" ? simulation_json(plan, phases, profile.model, limit_violations(curves))
                                        : simulation_text(plan, phases, profile.model, limit_violations(curves)));
  return 0;
}

void add_simulate_options(CLI::App& command, SimulateOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to simulate")->required()->type_name("");
  CLI::Option* const set =
      command
          .add_option(
              "--set", options.sets,
              "What if the changes below were made, several of them joined by commas. Each --set is a row beside "
              "the plan as it is")
          ->type_name("CHANGES")
          ->take_all();
  CLI::Option* const lose =
      command
          .add_option(
              "--lose", options.lost_rank,
              "What if this rank is lost without a spare at the beginning of each phase: its work goes to other "
              "ranks, or the layout changes")
          ->type_name("RANK")
          ->excludes(set);
  command
      .add_option("--timeline", options.timeline,
                  "Also write one iteration of each phase as a Chrome trace (for Perfetto)")
      ->type_name("FILE")
      ->excludes(set)
      ->excludes(lose);
  command
      .add_option("--memory", options.memory,
                  "Also write each rank's memory over one iteration of each phase: a picture (.svg) or a table (.csv)")
      ->check(CLI::Validator(
          [](const std::string& path) {
            return path.ends_with(".svg") || path.ends_with(".csv") ? "" : "must end in .svg or .csv";
          },
          ""))
      ->type_name("FILE")
      ->excludes(set)
      ->excludes(lose);
  command
      .add_option("--schedule-file", options.schedule_file,
                  "Simulate the plan with the schedule of this CSV file, as train --schedule-file does")
      ->type_name("FILE");
  add_source_options(command, options.sources);
  add_format_option(command, options.format);
}

}  // namespace

Command add_simulate_command(CLI::App& app) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Predict how a plan will run: times, bubbles, memory");
  add_simulate_options(*command, *options);
  command->footer(
      "Changes for --set:\n"
      "  bandwidth=x0.1          of messages and collectives: a factor, or GB/s (bandwidth=10)\n"
      "  latency=x10             of messages and collectives: a factor, or ms (latency=0.5)\n"
      "  card=12.5               each node's ranks share a network card of that many GB/s each way\n"
      "  switch=4x50             every 4 nodes share an uplink of 50 GB/s\n"
      "  all-reduce=tree         or ring, hierarchical, direct, fastest\n"
      "  overlap-reduction=on, scatter-gather=off\n"
      "  compute=x2, rank3=x0.5  the speed of all devices, or of one rank's\n"
      "  freeze=x0.5             every freeze at half its step (x2: later)\n"
      "  cache=off\n"
      "  recompute=layers        as plan --recompute, or off\n"
      "  jitter=0.05             every compute time varies by 5 % of itself (standard deviation)\n"
      "  failures=2              failures of the whole job a day\n"
      "  checkpoint=30           with failures: seconds that writing a checkpoint takes (60 by default)\n\n"
      "bubble_fraction is the idle part of ranks x makespan, and steady_bubble_fraction of ranks x iteration, which "
      "is\n"
      "shorter where iterations overlap; bubble_overhead is idle over busy time.\n\n"
      "Examples:\n  frostpipe simulate elastic.json --timeline elastic.trace.json\n"
      "  frostpipe simulate elastic.json --set bandwidth=x0.1 --set rank1=x0.5 --set cache=off,freeze=x2");
  return {command, [options] { return run_simulate(*options); }};
}

}  // namespace frostpipe
