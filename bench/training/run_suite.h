#pragma once
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "bench/training/bench_suite.h"
#include "bench/training/bench_table.h"

namespace frostpipe {

/// The functions that a suite needs from the program that runs it.
struct BenchTool {
  /// Runs frostpipe with these arguments, its output in `log`, and returns its exit code.
  std::function<int(const std::vector<std::string>& arguments, const std::filesystem::path& log)> run;
  /// Returns the seconds since a fixed point in time.
  std::function<double()> clock;
  /// Called before every run with the fraction of finished runs, and the one that starts.
  std::function<void(double fraction, const std::string& line)> show;
  /// Called for every failed run, with the reason.
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
/// and `train` in FOLDER/DATA/CONFIGURATION/seed-N. A run whose summary.json exists is not repeated, and a failed run
/// does not stop the others.
/// Seeds are the outermost loop, so that a change of the machine's speed affects all configurations alike and a short
/// budget gives one whole table; the other freeze speeds come after everything else. A run does not start if it is
/// expected to end after the budget. Its expected duration is that of the same configuration on the same data, else the
/// mean of all runs so far.
BenchResult run_suite(const BenchSuite& suite, const BenchOrder& order, const BenchTool& tool);

}  // namespace frostpipe
