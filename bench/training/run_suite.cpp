#include "bench/training/run_suite.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/separated_values.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

/// One run of a table: its configuration, data and seed.
struct BenchJob {
  const BenchData& data;
  const BenchConfiguration& configuration;
  int seed = 1;

  std::string name() const { return data.name + "/" + configuration.name; }
  std::string title() const { return fmt::format("{} seed {}", name(), seed); }
};

std::vector<BenchJob> jobs_of(const BenchSuite& suite, int num_seeds) {
  std::vector<BenchJob> jobs;
  for (const bool is_frontier : {false, true}) {
    for (int seed = 1; seed <= num_seeds; ++seed) {
      for (const BenchData& data : suite.data) {
        for (const BenchConfiguration& configuration : suite.configurations) {
          if (configuration.is_frontier == is_frontier) jobs.push_back({data, configuration, seed});
        }
      }
    }
  }
  return jobs;
}

/// The expected duration of runs.
class Durations {
 public:
  void add(const BenchJob& job, double seconds) {
    seconds_[job.name()] = seconds;
    total_ += seconds;
    ++count_;
  }
  /// Returns 0 before the first run.
  double expected_seconds(const BenchJob& job) const {
    const auto found = seconds_.find(job.name());
    if (found != seconds_.end()) return found->second;
    return count_ > 0 ? total_ / count_ : 0;
  }

 private:
  std::map<std::string, double> seconds_;
  double total_ = 0;
  int count_ = 0;
};

class SuiteRunner {
 public:
  SuiteRunner(const BenchSuite& suite, const BenchOrder& order, const BenchTool& tool)
      : suite_(suite), order_(order), tool_(tool) {}

  BenchResult run() {
    const double begin = tool_.clock();
    const std::vector<BenchJob> jobs = jobs_of(suite_, order_.num_seeds);
    Durations durations;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const BenchJob& job = jobs[i];
      if (const auto known = finished(job)) {
        runs_.push_back(*known);
        continue;
      }
      const double start = tool_.clock(), expected = durations.expected_seconds(job);
      if (start - begin + expected > order_.budget_seconds) {
        result_.left_out.push_back(job.title());
        continue;
      }
      tool_.show(
          static_cast<double>(i) / static_cast<double>(jobs.size()),
          fmt::format("run {} of {}: {}{}", i + 1, jobs.size(), job.title(),
                      expected > 0 ? ", about " + format_duration(static_cast<Nanoseconds>(expected * 1e9)) : ""));
      perform(job);
      durations.add(job, tool_.clock() - start);
    }
    result_.rows = bench_rows(runs_);
    return std::move(result_);
  }

 private:
  fs::path data_folder(const BenchJob& job) const { return order_.folder / job.data.name; }
  fs::path configuration_folder(const BenchJob& job) const { return data_folder(job) / job.configuration.name; }
  fs::path run_folder(const BenchJob& job) const {
    return configuration_folder(job) / fmt::format("seed-{}", job.seed);
  }

  std::optional<BenchRun> finished(const BenchJob& job) const {
    const fs::path summary = run_folder(job) / "summary.json";
    if (!fs::exists(summary)) return std::nullopt;
    return bench_run_of(job.data.name, job.configuration.name,
                        run_from_json(read_text_file(summary), summary.string()));
  }

  /// Throws RuntimeFailure with the last line of the command's output.
  void call(std::vector<std::string> arguments, const std::vector<std::vector<std::string>>& more,
            const fs::path& log) const {
    for (const std::vector<std::string>& part : more) arguments.insert(arguments.end(), part.begin(), part.end());
    const int code = tool_.run(arguments, log);
    if (code == 0) return;
    const std::string text = read_text_file(log);
    std::string_view last;
    for (const std::string_view line : split(text, '\n'))
      if (!line.empty()) last = line;
    throw RuntimeFailure(fmt::format("{} (exit code {}, {})", last, code, log.string()));
  }

  void perform(const BenchJob& job) try {
    const fs::path folder = run_folder(job);
    fs::create_directories(folder);
    const std::string profile = (data_folder(job) / "profile.json").string(),
                      cluster = (data_folder(job) / "cluster.json").string(),
                      plan = (configuration_folder(job) / "plan.json").string();
    if (!fs::exists(profile))
      call({"profile", "-o", profile, "--cluster", cluster}, {job.data.profile}, data_folder(job) / "profile.log");
    call({"plan", "--profile", profile, "--cluster", cluster, "--epochs", std::to_string(suite_.epochs), "-o", plan},
         {job.data.plan, job.configuration.plan}, folder / "plan.log");
    call({"train", plan, "--seed", std::to_string(job.seed), "--name", job.configuration.name, "-o", folder.string()},
         {job.data.train, job.configuration.train}, folder / "train.log");
    runs_.push_back(finished(job).value());
  } catch (const RuntimeFailure& error) {
    result_.failed.push_back(fmt::format("{}: {}", job.title(), error.what()));
    tool_.note(result_.failed.back());
  }

  const BenchSuite& suite_;
  const BenchOrder& order_;
  const BenchTool& tool_;
  std::vector<BenchRun> runs_;
  BenchResult result_;
};

}  // namespace

BenchResult run_suite(const BenchSuite& suite, const BenchOrder& order, const BenchTool& tool) {
  return SuiteRunner(suite, order, tool).run();
}

}  // namespace frostpipe
