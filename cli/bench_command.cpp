#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>

#include "bench/published/planner_table.h"
#include "bench/published/published_suites.h"
#include "bench/published/published_text.h"
#include "bench/training/bench_suite.h"
#include "bench/training/bench_table.h"
#include "cli/commands.h"
#include "cli/plans/plan_text.h"
#include "cli/shared/child_process.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/progress.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "profiles/error.h"
#include "profiles/files.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

constexpr int kSst2Phrases = 8000;

struct BenchOptions {
  bool list = false;
  std::string suite, model, sections, sst2, data, output;
  std::string budget;
  bool full = false;
  int epochs = 0;  // 0 = the suite's
  int seeds = 1;
  std::string only;
  std::string format;
};

/// A header and the same random lines whenever it is asked.
std::string random_lines(const std::string& text, int count) {
  std::istringstream input(text);
  std::string header, line;
  std::getline(input, header);
  std::vector<std::string> lines;
  while (std::getline(input, line)) {
    if (!line.empty()) lines.push_back(line);
  }
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < lines.size() && i < static_cast<std::size_t>(count); ++i)
    std::swap(lines[i], lines[i + random() % (lines.size() - i)]);
  lines.resize(std::min<std::size_t>(lines.size(), count));
  return fmt::format("{}\n{}\n", header, fmt::join(lines, "\n"));
}

/// The real model on real texts. The profile is of one rank per core, and of one process on all of them.
std::vector<BenchData> prepare_data(const BenchOptions& options) {
  std::vector<BenchData> all;
  const fs::path folder = options.output;
  const auto add = [&](const std::string& name, const std::vector<std::string>& data) {
    BenchData made{.name = name,
                   .profile = {"--model", options.model, "--global-batch", "64", "--nproc-per-node",
                               std::to_string(kHonestTableCores), "--memory-limit", "384MiB"},
                   .plan = {"--global-batch", "64"},
                   .train = data};
    made.profile.insert(made.profile.end(), data.begin(), data.end());
    all.push_back(std::move(made));
  };
  if (!options.sections.empty()) {
    read_text_file(options.sections);  // an unreadable one is found now
    add("sections", {"--data", fs::absolute(options.sections).string()});
  }
  if (!options.sst2.empty()) {
    const fs::path subset = folder / "sst2.train.tsv";
    write_file_atomically(subset, random_lines(read_text_file(fs::path(options.sst2) / "train.tsv"), kSst2Phrases));
    const fs::path test = fs::path(options.sst2) / "dev.tsv";
    read_text_file(test);
    add("sst2", {"--data", fs::absolute(subset).string(), "--test-data", fs::absolute(test).string()});
  }
  if (all.empty())
    throw UsageError(
        "bench pipetransformer: needs data: --sections FILE (made by scripts/debian-sections) or --sst2 FOLDER (GLUE's "
        "SST-2: train.tsv, dev.tsv), or both");
  return all;
}

int epochs_of(const BenchOptions& options) {
  return options.epochs > 0 ? options.epochs : options.suite == "rehearsal" ? 10 : 6;
}

BenchSuite suite_of(const BenchOptions& options) {
  const int epochs = epochs_of(options);
  if (options.suite == "rehearsal") {
    return {.title = fmt::format(
                "Rehearsal: {} epochs on 8 emulated ranks of 15 GiB, links at the times of the cluster file", epochs),
            .configurations = rehearsal_configurations(epochs),
            .data = rehearsal_data()};
  }
  if (options.model.empty()) throw UsageError("bench pipetransformer: needs --model FOLDER");
  return {
      .title = fmt::format("PipeTransformer and its baselines: MiniLM, {} epochs of mini-batch 64, {} cores, 384 MiB "
                           "per core (data_parallel, one_process: no limit)",
                           epochs, kHonestTableCores),
      .configurations = pipetransformer_configurations(epochs),
      .data = prepare_data(options)};
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options), suite_(suite_of(options)), progress_("bench") {}

  int run() {
    std::vector<BenchConfiguration>& configurations = suite_.configurations;
    if (!options_.full)
      std::erase_if(configurations, [&](const BenchConfiguration& one) {
        return one.is_frontier && options_.only.find(one.name) == std::string::npos;
      });
    if (!options_.only.empty()) {
      const auto wanted = "," + options_.only + ",";
      std::erase_if(configurations, [&](const BenchConfiguration& one) {
        return wanted.find("," + one.name + ",") == std::string::npos;
      });
      if (configurations.empty()) throw UsageError("--only: names no configuration; see frostpipe bench --list");
    }
    const std::vector<BenchJob> jobs = bench_jobs(suite_, options_.full ? std::max(3, options_.seeds) : options_.seeds);
    const double budget =
        options_.budget.empty() ? 1e18 : 1e-9 * static_cast<double>(parse_duration(options_.budget, "--budget"));
    double total = 0;
    std::map<std::string, double> seconds;
    int started = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const BenchJob& job = jobs[i];
      if (const auto known = finished(job)) {
        runs_.push_back(*known);
        continue;
      }
      const double expected = expected_seconds(job, seconds, started > 0 ? total / started : 0);
      if (!fits_budget(spent(), expected, budget)) {
        left_out_.push_back(title_of(job));
        continue;
      }
      progress_.show(
          static_cast<double>(i) / static_cast<double>(jobs.size()),
          fmt::format("run {} of {}: {}{}", i + 1, jobs.size(), title_of(job),
                      expected > 0 ? ", about " + format_duration(static_cast<Nanoseconds>(expected * 1e9)) : ""));
      const double begin = spent();
      perform(job);
      seconds[job_name(job)] = spent() - begin;
      total += spent() - begin;
      ++started;
    }
    report();
    return failed_.empty() ? 0 : 1;
  }

 private:
  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  static std::string title_of(const BenchJob& job) { return fmt::format("{} seed {}", job_name(job), job.seed); }
  fs::path data_folder(const std::string& dataset) const { return fs::path(options_.output) / dataset; }
  fs::path folder_of(const BenchJob& job) const {
    return data_folder(job.data.name) / job.configuration.name / fmt::format("seed-{}", job.seed);
  }

  std::optional<BenchRun> finished(const BenchJob& job) const {
    const fs::path summary = folder_of(job) / "summary.json";
    if (!fs::exists(summary)) return std::nullopt;
    return bench_run_of(job.data.name, job.configuration.name,
                        run_from_json(read_text_file(summary), summary.string()));
  }

  /// Throws RuntimeFailure with the last line that the command wrote.
  void tool(std::vector<std::string> arguments, const std::vector<std::vector<std::string>>& more,
            const fs::path& log) {
    for (const std::vector<std::string>& part : more) arguments.insert(arguments.end(), part.begin(), part.end());
    const int code = run_self(arguments, log);
    if (code == 0) return;
    std::istringstream lines(read_text_file(log));
    std::string last;
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) last = line;
    }
    throw RuntimeFailure(fmt::format("{} (exit code {}, {})", last, code, log.string()));
  }

  void perform(const BenchJob& job) try {
    const fs::path of_data = data_folder(job.data.name), folder = folder_of(job);
    fs::create_directories(folder);
    const std::string profile = (of_data / "profile.json").string(), cluster = (of_data / "cluster.json").string(),
                      plan = (folder.parent_path() / "plan.json").string();
    const std::string epochs = std::to_string(epochs_of(options_));
    if (!fs::exists(profile))
      tool({"profile", "-o", profile, "--cluster", cluster}, {job.data.profile}, of_data / "profile.log");
    tool({"plan", "--profile", profile, "--cluster", cluster, "--epochs", epochs, "-o", plan},
         {job.data.plan, job.configuration.plan}, folder / "plan.log");
    tool({"train", plan, "--seed", std::to_string(job.seed), "--name", job.configuration.name, "-o", folder.string()},
         {job.data.train, job.configuration.train}, folder / "train.log");
    runs_.push_back(finished(job).value());
  } catch (const RuntimeFailure& error) {
    failed_.push_back(fmt::format("{}: {}", title_of(job), error.what()));
    print_note(failed_.back());
  }

  static std::string ratio_text(const SpeedRatio& ratio) {
    if (ratio.geometric_mean == 0) return "-";
    if (ratio.low == ratio.high) return fmt::format("{:.2f}", ratio.geometric_mean);
    return fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio.geometric_mean, ratio.low, ratio.high);
  }

  static std::string difference_text(const BenchRow& row) {
    if (!row.has_difference) return "-";
    return fmt::format("{:+.2f} ({:+.2f} to {:+.2f})", 100 * row.difference, 100 * row.low, 100 * row.high);
  }

  void report() const {
    const std::vector<BenchRow> rows = bench_rows(runs_);
    using enum Table::Align;
    Table table({{"data", left},
                 {"configuration", left},
                 {"on", left},
                 {"seeds", right},
                 {"samples/s", right},
                 {"x static", right},
                 {"x data parallel", right},
                 {"x best unfrozen", right},
                 {"accuracy [%]", right},
                 {"minus data parallel [points]", right},
                 {"memory [MiB]", right},
                 {"frontier", left}});
    for (const BenchRow& row : rows) {
      table.add_row({row.dataset, row.configuration, ranks_text(row.world_size, row.threads_per_rank),
                     std::to_string(row.num_seeds), fmt::format("{:.1f}", row.samples_per_second),
                     ratio_text(row.to_static), ratio_text(row.to_data_parallel), ratio_text(row.to_best_unfrozen),
                     row.accuracy > 0 ? fmt::format("{:.2f}", 100 * row.accuracy) : "-", difference_text(row),
                     in_mebibytes(row.peak_memory_bytes), row.on_frontier ? "*" : ""});
    }
    std::string text = fmt::format(
        "{}\n\n{}\n"
        "x static: against the faster of the static pipelines; x best unfrozen: against the fastest that freezes\n"
        "nothing; paired by seed (geometric mean, least and most). Accuracy: paired over test items and seeds,\n"
        "95 % interval. Frontier: nothing else is both faster and more accurate.\n{}{}",
        suite_.title, table.to_string(), one_process_note(rows), breakdown(rows));
    for (const std::string& job : left_out_) text += fmt::format("not run, out of budget: {}\n", job);
    for (const std::string& job : failed_) text += fmt::format("failed: {}\n", job);
    write_file_atomically(fs::path(options_.output) / "table.txt", text);
    write_file_atomically(fs::path(options_.output) / "table.json", to_json(rows));
    print_result(options_.format == "json" ? to_json(rows) : text);
  }

  /// For rows that freeze on one rank, as the planner may choose for any of ours.
  static std::string one_process_note(const std::vector<BenchRow>& rows) {
    const bool any =
        std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.world_size == 1 && row.freezes; });
    return any ? "on 1 rank: freezing, and the cache where it is on, without a pipeline\n" : "";
  }

  /// As Figure 9 of the paper.
  std::string breakdown(const std::vector<BenchRow>& rows) const {
    std::string text;
    for (const BenchRow& row : rows) {
      for (const BenchConfiguration& one : suite_.configurations) {
        if (one.name != row.configuration || one.paper_speedup.empty() || row.to_static.geometric_mean == 0) continue;
        text += fmt::format("breakdown, {}: {} {:.2f} times the static pipeline (the paper's figure for ViT: {})\n",
                            row.dataset, row.configuration, row.to_static.geometric_mean, one.paper_speedup);
      }
    }
    return text;
  }

  const BenchOptions& options_;
  BenchSuite suite_;
  ProgressDisplay progress_;
  std::vector<BenchRun> runs_;
  std::vector<std::string> left_out_, failed_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string list_text() {
  std::string text =
      "pipetransformer: freezing, AutoPipe, AutoDP and AutoCache against the strongest baselines, on two cores and "
      "real texts\n";
  for (const BenchConfiguration& one : pipetransformer_configurations(6))
    text += fmt::format("  {:<20} {}{}\n", one.name, one.meaning, one.is_frontier ? " (--full)" : "");
  text +=
      "rehearsal: the same components on 8 emulated ranks, models like ViT-B/16 and BERT-large; needs nothing but -o "
      "FOLDER\n";
  for (const BenchConfiguration& one : rehearsal_configurations(10))
    text += fmt::format("  {:<20} {}\n", one.name, one.meaning);
  text +=
      "planners: every method on the same models, and what each part of planning a whole run gains; with --data FOLDER "
      "also PipeDream's and Piper's profiles\n";
  text +=
      "sailor: the simulator against published training runs on GH200 and mixed GPUs; needs --data FOLDER with their "
      "files\n";
  text += "vtrain: against published runs of Megatron on A100s; needs --data FOLDER\n";
  for (const FilelessSuite& one : kFilelessSuites) text += fmt::format("{}: {}\n", one.name, one.meaning);
  return text;
}

int run_bench(const BenchOptions& options) {
  if (options.list) {
    print_result(list_text());
    return 0;
  }
  for (const FilelessSuite& one : kFilelessSuites) {
    if (options.suite != one.name) continue;
    print_result(published_text(one.table(), options.format));
    return 0;
  }
  if (options.suite == "sailor" || options.suite == "vtrain") {
    if (options.data.empty())
      throw UsageError(fmt::format("bench {}: needs --data FOLDER with the published files", options.suite));
    print_result(published_text(options.suite == "sailor" ? sailor_table(options.data) : vtrain_table(options.data),
                                options.format));
    return 0;
  }
  if (options.suite == "planners") {
    if (options.format != "text")
      throw UsageError(fmt::format("--format {}: is not for the planners' tables", options.format));
    print_result(planner_text(options.data));
    return 0;
  }
  if (options.format == "csv" || options.format == "html")
    throw UsageError(fmt::format("--format {}: is for the suites of published measurements", options.format));
  if (options.suite.empty()) throw UsageError("bench: name a suite, or --list them");
  if (options.output.empty()) throw UsageError("bench: needs -o FOLDER for its results");
  for (const char* table : {"table.txt", "table.json"})
    require_writable(fs::path(options.output) / table);  // found out before the runs, not after them
  return Bench(options).run();
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Train in many ways and compare them in one table");
  command->add_flag("--list", options->list, "Name the suites and what they run");
  std::vector<std::string> suites = {"pipetransformer", "rehearsal", "planners", "sailor", "vtrain"};
  for (const FilelessSuite& one : kFilelessSuites) suites.push_back(one.name);
  command->add_option("SUITE", options->suite, fmt::format("{}", fmt::join(suites, ", ")))
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
                   "Folder for one result per run, logs, table.txt, table.json; runs that are there are not repeated")
      ->type_name("FOLDER");
  command->add_option("--epochs", options->epochs, "Length of every run; default: 6, rehearsal 10")
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N");
  add_count_option(*command, "--seeds", options->seeds, "Runs of each configuration");
  command->add_option("--budget", options->budget, "Start no run that would end later than this: 1h, 90min, 600s")
      ->check(CLI::Validator(check_duration, ""))
      ->type_name("TIME");
  command->add_flag("--full", options->full, "Three seeds, and the other freeze speeds");
  command->add_option("--only", options->only, "Some configurations, separated by commas")->type_name("NAMES");
  command
      ->add_option("--data", options->data,
                   "sailor, vtrain: the published files; planners: PipeDream's and Piper's profiles")
      ->type_name("FOLDER");
  add_format_option(*command, options->format, {"text", "json", "csv", "html"});
  command->footer(
      "Example:\n  frostpipe bench pipetransformer --model minilm/ --sections sections.tsv --sst2 sst2/ --budget 1h -o "
      "runs/bench");
  return {command, [options] { return run_bench(*options); }};
}

}  // namespace frostpipe
