#include "cli/bench_suite.h"

#include <fmt/format.h>

namespace frostpipe {

std::vector<BenchConfiguration> pipetransformer_suite(int epochs) {
  const std::string one_epoch = fmt::format("{:.6f}", 1.0 / epochs);
  const std::vector<std::string> elastic{"--method", "pipetransformer"};
  const auto freezing = [](const std::string& rule, const std::string& warm_up) {
    return std::vector<std::string>{"--freeze", rule, "--freeze-warm-up", warm_up};
  };
  return {
      {"data_parallel", "a replica per rank, without the memory limit", {"--method", "data-parallel", "--ignore-memory-limit"}, {}},
      {"static_gpipe", "the best static GPipe pipeline", {"--method", "static", "--schedule", "GPipe"}, {}},
      {"static_1f1b", "the best static 1F1B pipeline", {"--method", "static", "--schedule", "1F1B"}, {}},
      {"freeze_only", "the best static pipeline, freezing by the cap", {"--method", "freeze-only"}, freezing("cap", "0.34")},
      {"published", "PipeTransformer's rules as published, alpha 1/3 and a decision each epoch",
       {"--method", "pipetransformer-published"},
       {"--freeze", "cap", "--freeze-alpha", "0.333333", "--freeze-warm-up", one_epoch, "--freeze-interval", one_epoch}},
      {"elastic_no_cache", "ours without the cache", {"--method", "pipetransformer", "--cache", "off"}, freezing("cap", "0.34")},
      {"elastic", "ours: freezing by the cap, look-ahead, cache", elastic, freezing("cap", "0.34")},
      {"elastic_10", "ours, freezing from 10 % of the run on", elastic, freezing("cap", "0.1"), true},
      {"elastic_20", "ours, freezing from 20 % of the run on", elastic, freezing("cap", "0.2"), true},
      {"elastic_50", "ours, freezing from 50 % of the run on", elastic, freezing("cap", "0.5"), true},
      {"elastic_adaptive", "ours, freezing by the adaptive rule", elastic, freezing("adaptive", "0.1"), true},
  };
}

std::vector<BenchJob> bench_jobs(const std::vector<std::string>& datasets, const std::vector<BenchConfiguration>& configurations, int num_seeds) {
  std::vector<BenchJob> jobs;
  for (const bool frontier : {false, true}) {
    for (int seed = 1; seed <= num_seeds; ++seed) {
      for (const std::string& dataset : datasets) {
        for (const BenchConfiguration& configuration : configurations) {
          if (configuration.is_frontier == frontier) jobs.push_back({dataset, configuration, static_cast<std::uint64_t>(seed)});
        }
      }
    }
  }
  return jobs;
}

bool fits_budget(double spent_seconds, double expected, double budget_seconds) { return spent_seconds + expected <= budget_seconds; }

double expected_seconds(const BenchJob& job, const std::map<std::string, double>& seconds_by_job_name, double mean_seconds) {
  const auto found = seconds_by_job_name.find(job_name(job));
  return found == seconds_by_job_name.end() ? mean_seconds : found->second;
}

std::string job_name(const BenchJob& job) { return job.dataset + "/" + job.configuration.name; }

}  // namespace frostpipe
