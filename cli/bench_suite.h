#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace frostpipe {

/// One way to train, by the options that `plan` and `train` get.
struct BenchConfiguration {
  std::string name;
  std::string meaning;
  std::vector<std::string> plan, train;
  bool is_frontier = false;  // another freeze speed of an earlier one
};

/// The honest table: baselines that nobody has handicapped, the published rules, ours, and ours at other freeze speeds.
std::vector<BenchConfiguration> pipetransformer_suite(int epochs);

/// One run of a table: what, on which data, with which seed.
struct BenchJob {
  std::string dataset;
  BenchConfiguration configuration;
  std::uint64_t seed = 1;
};

/// Seeds outermost, so that a change of the machine's speed meets all configurations alike and a short budget gives one whole table; the other freeze
/// speeds come after everything else.
std::vector<BenchJob> bench_jobs(const std::vector<std::string>& datasets, const std::vector<BenchConfiguration>& configurations, int num_seeds);

/// Whether a job that should take `expected_seconds` is still started.
bool fits_budget(double spent_seconds, double expected_seconds, double budget_seconds);

/// What the job should take: as the same configuration took on this data; else the mean of all jobs so far; 0 before the first.
double expected_seconds(const BenchJob& job, const std::map<std::string, double>& seconds_by_job_name, double mean_seconds);

/// Name of a dataset and a configuration together, as in seconds_by_job_name.
std::string job_name(const BenchJob& job);

}  // namespace frostpipe
