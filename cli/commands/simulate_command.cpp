#include <CLI/CLI.hpp>
#include <memory>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/plans/phase_timelines.h"
#include "cli/plans/plan_files.h"
#include "cli/plans/plan_loss.h"
#include "cli/plans/plan_what_ifs.h"
#include "cli/report/memory_svg.h"
#include "cli/report/simulation_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
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
  print_result(options.format == "json" ? simulation_json(plan, phases, profile, cluster, limit_violations(curves))
                                        : simulation_text(plan, phases, profile, cluster, limit_violations(curves)));
  return 0;
}

void add_simulate_options(CLI::App& command, SimulateOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to simulate")->required()->type_name("");
  CLI::Option* const set =
      command
          .add_option(
              "--set", options.sets,
              "Also predict the plan with these changes (listed below), several of them joined by commas. Each --set "
              "is a row beside the unchanged plan")
          ->type_name("CHANGES")
          ->allow_extra_args(false)  // PLAN may follow
          ->take_all();
  CLI::Option* const lose =
      command
          .add_option(
              "--lose", options.lost_rank,
              "Predict the cost of losing this rank without a spare at the beginning of each phase: its work goes to "
              "other ranks, or the layout changes")
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
      "  bandwidth=x0.1          of all links: a factor; or GB/s of links that are not shared (bandwidth=10)\n"
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
