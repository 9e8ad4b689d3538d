#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// One finished run of a benchmark.
struct BenchRun {
  std::string dataset, configuration;
  std::uint64_t seed = 0;
  double samples_per_second = 0;
  double wall_seconds = 0;
  double test_accuracy = 0;
  Bytes peak_memory_bytes = 0;  // largest of all ranks
  int world_size = 1;
  int threads_per_rank = 1;
  bool freezes = false;
  /// Whether each test item was predicted correctly, in the order of the items, to pair runs of one dataset and seed.
  std::vector<bool> right;
  bool operator==(const BenchRun&) const = default;
};

BenchRun bench_run_of(std::string dataset, std::string configuration, const RunSummary& run);

/// The ratio of two configurations' throughputs, over the seeds that both have.
struct SpeedRatio {
  double geometric_mean = 0, low = 0, high = 0;  // 0 = no seed in common
  bool operator==(const SpeedRatio&) const = default;
};

/// All seeds of one configuration on one dataset.
struct BenchRow {
  std::string dataset, configuration;
  int world_size = 1;  // of the first seed's run
  int threads_per_rank = 1;
  bool freezes = false;  // with any seed
  int num_seeds = 0;
  double samples_per_second = 0;  // median over the seeds
  SpeedRatio to_static;           // the fastest configuration whose name starts with "static", by its median
  SpeedRatio to_data_parallel;    // "data_parallel"
  SpeedRatio to_best_unfrozen;    // the fastest configuration that freezes nothing, by its median
  double accuracy = 0;            // mean over the seeds
  /// The accuracy minus that of data_parallel, and its 95 % interval: with d = right - data_parallel's right of each of
  /// the n test items of all seeds in common, mean(d) +- 1.96 sqrt(var(d) / n).
  double difference = 0, low = 0, high = 0;
  bool has_difference = false;  // false if there are fewer than two items in common
  Bytes peak_memory_bytes = 0;
  /// Whether no other configuration of the dataset is both faster and more accurate.
  bool on_frontier = false;
  bool operator==(const BenchRow&) const = default;
};

/// Returns the rows in the order in which datasets and configurations first occur.
std::vector<BenchRow> bench_rows(const std::vector<BenchRun>& runs);

/// Returns the rows as JSON with the envelope "frostpipe.bench".
std::string to_json(const std::vector<BenchRow>& rows);

}  // namespace frostpipe
