#pragma once
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "bench/training/bench_suite.h"
#include "bench/training/bench_table.h"

namespace frostpipe {

/// What a suite needs of the program that runs it.
struct BenchTool {
  /// Runs frostpipe with these arguments, its output in `log`, and returns its exit code.
  std::function<int(const std::vector<std::string>& arguments, const std::filesystem::path& log)> run;
  /// Seconds since any fixed moment.
  std::function<double()> clock;
  /// Told before every run: which fraction of them is done, and which one starts.
  std::function<void(double fraction, const std::string& line)> show;
  /// Told of every run that failed, and why.
  std::function<void(const std::string& failure)> note;
};

struct BenchOrder {
  std::filesystem::path folder;  // of the results
  int num_seeds = 1;
  double budget_seconds = std::numeric_limits<double>::infinity();
};

struct BenchResult {
  std::vector<BenchRow> rows;
  std::vector<std::string> left_out;  // runs that the budget had no room for
  std::vector<std::string> failed;    // runs with the reason
};

/// Trains every configuration on all data with every seed, each as `profile` (once for all on the same data), `plan`
/// and `train` in FOLDER/DATA/CONFIGURATION/seed-N; a run whose summary.json is there already is not repeated, and one
/// that fails does not stop the others.
///
/// Seeds are outermost, so that a change of the machine's speed meets all configurations alike and a short budget gives
/// one whole table; the other freeze speeds come after everything else. No run starts that should end after the budget:
/// it should take as long as the same configuration took on the same data; else the mean of all runs so far.
BenchResult run_suite(const BenchSuite& suite, const BenchOrder& order, const BenchTool& tool);

}  // namespace frostpipe
