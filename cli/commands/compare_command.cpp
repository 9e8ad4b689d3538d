#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/plans/embedding_text.h"
#include "cli/plans/plan_files.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/run_tables.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "operators/plan/operator_plan.h"
#include "plan/plan_kind.h"
#include "plan/stages.h"
#include "simulator/predict_phases.h"

namespace frostpipe {
namespace {

struct CompareOptions {
  std::vector<std::string> files;  // PLAN SUMMARY PLAN SUMMARY ...
  SourceOverrides sources;
  std::string output;
  std::string format;
};

/// A plan, and the run that followed it, to which load_pair() adds the predictions.
struct ComparedRun {
  TrainingPlan plan;      // as it was made
  TrainingPlan executed;  // as it was run
  Profile profile;
  Cluster cluster;
  RunSummary run;
  WhatIf embedding_alone;
};

/// Throws unless the run is one of this operator plan. The run's summary already has the predictions of the plans that
/// it followed.
void require_run_of(const OperatorPlan& plan, const RunSummary& run, const std::string& plan_path,
                    const std::string& summary_path) {
  if (!run.net)
    throw InvalidInput(summary_path, fmt::format("must be of a net's run, as {} is a plan of operators", plan_path),
                       "of another run");
  if (run.net->net == plan.graph.net && run.global_batch_size == plan.graph.batch) return;
  throw InvalidInput(
      summary_path + ": net",
      fmt::format("must be {} with mini-batches of {} as in {}", plan.graph.net, plan.graph.batch, plan_path),
      fmt::format("{} with mini-batches of {}", run.net->net, run.global_batch_size));
}

/// Returns the name of the folder that the file is in, however its path is written.
std::string folder_name(const std::string& path) {
  return std::filesystem::weakly_canonical(path).parent_path().filename().string();
}

/// Reads each run's summary. Runs that share a name, such as two of one method, are named by the folders of their
/// summaries instead. Throws if this does not tell all runs apart.
std::vector<RunSummary> load_runs(const std::vector<std::string>& summary_paths) {
  std::vector<RunSummary> runs;
  std::map<std::string, int> uses;
  for (const std::string& path : summary_paths) {
    runs.push_back(run_from_json(read_named_file(path), path));
    ++uses[runs.back().name];
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string own_name = runs[i].name;
    if (uses[own_name] > 1) runs[i].name = folder_name(summary_paths[i]);
    if (names.insert(runs[i].name).second) continue;
    throw InvalidInput(summary_paths[i] + ": name",
                       "must differ from the other runs' (train --name), or be in a folder of another name",
                       fmt::format("{} in a folder {}", own_name, folder_name(summary_paths[i])));
  }
  return runs;
}

ComparedRun load_pair(const std::string& plan_path, const std::string& summary_path, RunSummary run,
                      const SourceOverrides& sources) {
  ComparedRun pair{
      .plan = {}, .executed = {}, .profile = {}, .cluster = {}, .run = std::move(run), .embedding_alone = {}};
  const std::string plan = read_named_file(plan_path);
  if (kind_of_plan(plan, plan_path) == PlanKind::operators) {
    require_run_of(operator_plan_from_json(plan, plan_path), pair.run, plan_path, summary_path);
    return pair;
  }
  pair.plan = plan_by_file(plan, plan_path, /*schedule_file=*/"");
  pair.profile = load_profile_of(pair.plan, plan_path, sources);
  pair.cluster = load_cluster_of(pair.plan, plan_path, sources);
  pair.run.model = pair.profile.model.name;
  const std::string executed_path = (std::filesystem::path(summary_path).parent_path() / "executed_plan.json").string();
  pair.executed = plan_from_json(read_text_file(executed_path), executed_path);
  require_same_model(pair.executed, pair.profile.model, executed_path);
  validate_executed(pair.executed, pair.profile.model, executed_path);
  require_split_backward(pair.executed.phases, pair.profile, pair.plan, plan_path, sources);
  if (pair.executed.method != pair.plan.method) {
    throw InvalidInput(executed_path + ": method",
                       fmt::format("must be {} as in {}", to_string(pair.plan.method), plan_path),
                       to_string(pair.executed.method));
  }
  add_predictions(pair.run, pair.executed, executed_path, pair.profile, pair.cluster);
  const int tokens = pair.run.phases.empty() ? 0 : pair.run.phases.front().tokens;
  pair.embedding_alone =
      embedding_what_if(pair.run.name, freeze_embedding_alone(pair.executed, tokens, pair.profile, pair.cluster));
  return pair;
}

std::string freezing_of(const TrainingPlan& plan, const Model& model) {
  std::string text;
  for (const Phase& phase : plan.phases) {
    text += fmt::format("{}step {}: {} frozen on {} x {}", text.empty() ? "" : ", ", phase.from_step,
                        frozen_blocks(model, phase.first_trainable_layer), num_stages(phase),
                        phase.layout.data_parallel_size);
  }
  return fmt::format("{}; {} steps", text, plan.num_steps);
}

/// Says how the plan's forecast of freezing differs from what happened. The prediction errors do not include this.
std::string forecast_text(const std::vector<ComparedRun>& pairs) {
  std::string text;
  for (const ComparedRun& pair : pairs) {
    if (pair.run.net) continue;
    const std::string forecast = freezing_of(pair.plan, pair.profile.model);
    const std::string executed = freezing_of(pair.executed, pair.profile.model);
    if (pair.plan.phases.size() == 1 && forecast == executed) continue;
    text += fmt::format("forecast of {}: {}\n", pair.run.name, forecast == executed ? "as executed" : "");
    if (forecast != executed) text += fmt::format("  planned   {}\n  executed  {}\n", forecast, executed);
  }
  return text.empty() ? "" : "\n" + text;
}

std::string memory_text(const std::vector<ComparedRun>& pairs) {
  std::string text;
  for (const ComparedRun& pair : pairs) {
    if (pair.run.net || pair.executed.memory_limited) continue;
    std::string limits;
    for (const Device& device : pair.cluster.devices) {
      if (device.memory_limit_bytes) limits += (limits.empty() ? "" : " / ") + in_mebibytes(*device.memory_limit_bytes);
    }
    if (limits.empty()) continue;
    text += fmt::format("{} ran without the memory limit ({} MiB per rank): it shows what a larger device would do\n",
                        pair.run.name, limits);
  }
  return text.empty() ? "" : "\n" + text;
}

int run_compare(const CompareOptions& options) {
  if (options.files.size() % 2 != 0) {
    throw UsageError(fmt::format("expected pairs of PLAN SUMMARY; {} has no summary", options.files.back()));
  }
  std::vector<std::string> summary_paths;
  for (std::size_t i = 1; i < options.files.size(); i += 2)
    summary_paths.push_back(file_in(options.files[i], "summary.json"));
  std::vector<RunSummary> runs = load_runs(summary_paths);
  std::vector<ComparedRun> pairs;
  for (std::size_t i = 0; i < runs.size(); ++i)
    pairs.push_back(load_pair(options.files[2 * i], summary_paths[i], std::move(runs[i]), options.sources));
  runs.clear();
  for (const ComparedRun& pair : pairs) runs.push_back(pair.run);
  Comparison comparison = compare(std::move(runs));
  for (const ComparedRun& pair : pairs) {
    if (pair.run.net) continue;
    const bool starts_unfrozen = pair.executed.phases.front().first_trainable_layer == 0;
    if (pair.plan.method != PlanMethod::pipetransformer && starts_unfrozen)
      comparison.what_ifs.push_back(pair.embedding_alone);
  }
  const std::string json = to_json(comparison);
  if (!options.output.empty()) write_named_file(options.output, json);
  print_result(options.format == "json" ? json
                                        : comparison_text(comparison) + forecast_text(pairs) + memory_text(pairs));
  return 0;
}

}  // namespace

Command add_compare_command(CLI::App& app) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand("compare", "Compare predictions with measurements, and runs with each other");
  command
      ->add_option("PLAN SUMMARY", options->files,
                   "Pairs of a plan and its run: the run's folder, or the summary.json in it. The last run is compared "
                   "with each of the others")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", options->output, "Summary of all runs to write, for report")->type_name("FILE");
  add_source_options(*command, options->sources);
  add_format_option(*command, options->format);
  command->footer(
      "Predictions are for the layouts that a run really used (executed_plan.json beside its summary), from the "
      "profile that was taken before it. Runs that have the same name, such as two of one method, are named by the "
      "folders of their summaries.\n\n"
      "Example:\n  frostpipe compare static.json runs/static elastic.json runs/elastic -o summary.json");
  return {command, [options] { return run_compare(*options); }};
}

}  // namespace frostpipe
