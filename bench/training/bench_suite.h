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
  bool is_frontier = false;   // another freeze speed of an earlier one
  std::string paper_speedup;  // what the paper's Figure 9 says of it, for ViT on ImageNet and 16 GPUs; empty = nothing
};

/// What is trained: options that `profile`, `plan` and `train` get for every configuration.
struct BenchData {
  std::string name;
  std::vector<std::string> profile, plan, train;
};

/// Configurations on data, in one table.
struct BenchSuite {
  std::string title;
  std::vector<BenchConfiguration> configurations;
  std::vector<BenchData> data;
};

/// Cores that the honest table is measured on: ranks that its profile is taken with, and threads of one process.
inline constexpr int kHonestTableCores = 2;

/// The honest table: baselines that nobody has handicapped, one process on all cores among them, the published rules,
/// ours, and ours at other freeze speeds.
std::vector<BenchConfiguration> pipetransformer_configurations(int epochs);

/// Eight emulated ranks, pipelines that start with eight stages, the cap with alpha 1/3 once an epoch; and the
/// estimated models they train.
std::vector<BenchConfiguration> rehearsal_configurations(int epochs);
std::vector<BenchData> rehearsal_data();

/// One run of a table: what, on which data, with which seed.
struct BenchJob {
  BenchData data;
  BenchConfiguration configuration;
  std::uint64_t seed = 1;
};

/// Seeds outermost, so that a change of the machine's speed meets all configurations alike and a short budget gives one
/// whole table; the other freeze speeds come after everything else.
std::vector<BenchJob> bench_jobs(const BenchSuite& suite, int num_seeds);

/// Whether a job that should take `expected_seconds` is still started.
bool fits_budget(double spent_seconds, double expected_seconds, double budget_seconds);

/// What the job should take: as the same configuration took on this data; else the mean of all jobs so far; 0 before
/// the first.
double expected_seconds(const BenchJob& job, const std::map<std::string, double>& seconds_by_job_name,
                        double mean_seconds);

/// Name of a dataset and a configuration together, as in seconds_by_job_name.
std::string job_name(const BenchJob& job);

}  // namespace frostpipe
