#include "bench/bench_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "base/process/child_output.h"
#include "bench/training/bench_suite.h"
#include "bench/training/bench_text.h"
#include "bench/training/run_suite.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/usage_error.h"
#include "papers/mtrain_table.h"
#include "papers/planner_table.h"
#include "papers/published_suites.h"
#include "papers/published_text.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

constexpr int kSuiteEpochs = 6, kRehearsalEpochs = 10;

struct BenchOptions {
  std::string suite, model, sections, sst2, data, output;
  std::string budget;
  bool full = false;
  int epochs = 0;  // 0 = the suite's
  std::string only;
  std::string format;
};

/// The data that the options name, at least one file or folder.
std::vector<BenchData> data_of(const BenchOptions& options) {
  std::vector<BenchData> data;
  if (!options.sections.empty()) data.push_back(sections_data(options.model, options.sections));
  if (!options.sst2.empty()) data.push_back(sst2_data(options.model, options.sst2, options.output));
  if (data.empty())
    throw UsageError(
        "bench pipetransformer: needs data: --sections FILE (made by scripts/debian-sections) or --sst2 FOLDER (GLUE's "
        "SST-2: train.tsv, dev.tsv), or both");
  return data;
}

BenchSuite suite_of(const BenchOptions& options) {
  const auto epochs_or = [&](int of_suite) { return options.epochs > 0 ? options.epochs : of_suite; };
  if (options.suite == "rehearsal") return rehearsal_suite(epochs_or(kRehearsalEpochs));
  if (options.model.empty()) throw UsageError("bench pipetransformer: needs --model FOLDER");
  return pipetransformer_suite(epochs_or(kSuiteEpochs), data_of(options));
}

/// Runs the tool, which lies beside this program, with these arguments.
int run_tool(const std::vector<std::string>& arguments, const fs::path& log) {
  std::vector<std::string> command{fs::read_symlink("/proc/self/exe").parent_path() / "frostpipe"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_logged(command, log);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int run_training(const BenchOptions& options) {
  const fs::path folder = options.output, text_file = folder / "table.txt", json_file = folder / "table.json";
  for (const fs::path& file : {text_file, json_file}) require_writable(file);  // found out before the runs
  BenchSuite suite = suite_of(options);
  select_configurations(suite, options.only, options.full);
  BenchOrder order{.folder = folder, .num_seeds = options.full ? 3 : 1};
  if (!options.budget.empty())
    order.budget_seconds = 1e-9 * static_cast<double>(parse_duration(options.budget, "--budget"));

  ProgressDisplay progress("bench");
  const BenchTool tool{.run = run_tool,
                       .clock = seconds_now,
                       .show = [&](double fraction, const std::string& line) { progress.show(fraction, line); },
                       .note = print_note};
  const BenchResult result = run_suite(suite, order, tool);
  const std::string text = bench_text(suite, result), json = to_json(result.rows);
  write_file_atomically(text_file, text);
  write_file_atomically(json_file, json);
  progress.clear();
  print_result(options.format == "json" ? json : text);
  return result.failed.empty() ? 0 : 1;
}

std::string list_text() {
  std::string text =
      "pipetransformer: freezing, AutoPipe, AutoDP and AutoCache against the strongest baselines, on two cores and "
      "real texts\n";
  for (const BenchConfiguration& one : pipetransformer_suite(kSuiteEpochs, {}).configurations)
    text += fmt::format("  {:<20} {}{}\n", one.name, one.meaning, one.is_frontier ? " (--full)" : "");
  text +=
      "rehearsal: the same components on 8 emulated ranks, models like ViT-B/16 and BERT-large; needs nothing but -o "
      "FOLDER\n";
  for (const BenchConfiguration& one : rehearsal_suite(kRehearsalEpochs).configurations)
    text += fmt::format("  {:<20} {}\n", one.name, one.meaning);
  text +=
      "planners: every method on the same models, and what each part of planning a whole run gains; with --data FOLDER "
      "also PipeDream's and Piper's profiles\n";
  text +=
      "mtrain: nets with batch norm on unequal devices, operator by operator: plan, bound and baselines; needs no "
      "files\n";
  for (const FolderSuite& one : kFolderSuites)
    text += fmt::format("{}: {}; needs --data FOLDER with the files\n", one.name, one.meaning);
  for (const FilelessSuite& one : kFilelessSuites) text += fmt::format("{}: {}\n", one.name, one.meaning);
  return text;
}

/// Returns the text of a suite that does not train; nothing if the suite trains, or if there is none of that name.
std::optional<std::string> published_suite_text(const BenchOptions& options) {
  for (const FilelessSuite& one : kFilelessSuites) {
    if (options.suite == one.name) return published_text(one.table(), options.format);
  }
  for (const FolderSuite& one : kFolderSuites) {
    if (options.suite != one.name) continue;
    if (options.data.empty())
      throw UsageError(fmt::format("bench {}: needs --data FOLDER with the published files", options.suite));
    return published_text(one.table(options.data), options.format);
  }
  if (options.suite == "mtrain") {
    if (options.format == "csv" || options.format == "html")
      throw UsageError(fmt::format("--format {}: is not for the table of mtrain", options.format));
    return mtrain_text(mtrain_rows(), options.format);
  }
  if (options.suite == "planners") {
    if (options.format != "text")
      throw UsageError(fmt::format("--format {}: is not for the planners' tables", options.format));
    return planner_text(options.data);
  }
  return std::nullopt;
}

/// Options that have an effect on some suites only: those that train, or one of them.
constexpr std::string_view kOfTraining[] = {"--output", "--epochs", "--budget", "--full", "--only"};
constexpr std::string_view kOfTexts[] = {"--model", "--sections", "--sst2"};

bool reads_a_folder(const std::string& suite) {
  return suite == "planners" || std::ranges::find(kFolderSuites, suite, &FolderSuite::name) != std::end(kFolderSuites);
}

/// Throws UsageError if an option is given that has no effect on the suite.
void require_options_of_suite(const CLI::App& command, const std::string& suite) {
  const bool is_of_texts = suite == "pipetransformer", trains = is_of_texts || suite == "rehearsal";
  const auto refuse = [&](const auto& names, const std::string& suites) {
    for (const std::string_view name : names)
      if (command.count(std::string(name)) > 0)
        throw UsageError(fmt::format("{}: must be left out {}; it is for {}", name,
                                     suite.empty() ? "without SUITE" : "for " + suite, suites));
  };
  if (!is_of_texts) refuse(kOfTexts, "pipetransformer");
  if (!trains) refuse(kOfTraining, "pipetransformer and rehearsal");
  if (!reads_a_folder(suite)) refuse(std::array{std::string_view("--data")}, "suites that read published files");
}

int run_bench(const CLI::App& command, const BenchOptions& options) {
  require_options_of_suite(command, options.suite);
  const std::optional<std::string> text = options.suite.empty() ? list_text() : published_suite_text(options);
  if (text) {
    print_result(*text);
    return 0;
  }
  if (options.format == "csv" || options.format == "html")
    throw UsageError(fmt::format("--format {}: is for the suites of published measurements", options.format));
  if (options.output.empty()) throw UsageError("bench: needs -o FOLDER for its results");
  return run_training(options);
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Compare ways to train and to plan, and predictions with published measurements");
  std::vector<std::string> suites = {"pipetransformer", "rehearsal", "planners", "mtrain"}, of_files;
  for (const FolderSuite& one : kFolderSuites) of_files.push_back(one.name);
  suites.insert(suites.end(), of_files.begin(), of_files.end());
  for (const FilelessSuite& one : kFilelessSuites) suites.push_back(one.name);
  command
      ->add_option("SUITE", options->suite,
                   fmt::format("{}. Default: lists them and their configurations", fmt::join(suites, ", ")))
      ->check(CLI::IsMember(suites).description(""))
      ->type_name("");
  command->add_option("--model", options->model, "Hugging Face folder of a BERT-type encoder")->type_name("FOLDER");
  command->add_option("--sections", options->sections, "The quickstart's texts (scripts/debian-sections makes them)")
      ->type_name("TSV");
  command
      ->add_option("--sst2", options->sst2,
                   "GLUE's SST-2: train.tsv, of which 8,000 phrases are drawn, and dev.tsv to test on")
      ->type_name("FOLDER");
  command
      ->add_option("-o,--output", options->output,
                   "Folder for one result per run, logs, table.txt, table.json; finished runs in it are not repeated")
      ->type_name("FOLDER");
  command
      ->add_option("--epochs", options->epochs,
                   "Length of every run, in passes over the data. Default: 6, for rehearsal 10")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  command->add_option("--budget", options->budget, "Start no run that would end later than this: 1h, 90min, 600s")
      ->check(CLI::Validator(check_duration, ""))
      ->type_name("TIME");
  command->add_flag("--full", options->full, "Run three seeds, and the other freeze speeds too");
  command->add_option("--only", options->only, "Run only these configurations, separated by commas")
      ->type_name("NAMES");
  command
      ->add_option(
          "--data", options->data,
          fmt::format("{}: the published files; planners: PipeDream's and Piper's profiles", fmt::join(of_files, ", ")))
      ->type_name("FOLDER");
  add_format_option(*command, options->format, {"text", "json", "csv", "html"});
  command->footer(
      "Example:\n  frostpipe bench pipetransformer --model minilm/ --sections sections.tsv --sst2 sst2/ --budget 1h -o "
      "runs/bench");
  return {command, [command, options] { return run_bench(*command, *options); }};
}

}  // namespace frostpipe
