#pragma once
#include <optional>
#include <utility>
#include <vector>

namespace frostpipe {

struct MilpColumn {
  double lower = 0, upper = 0;
  double objective = 0;
  bool is_integer = false;
};

/// lower <= sum of coefficient x column <= upper.
struct MilpRow {
  std::vector<std::pair<int, double>> terms;  // column, coefficient
  double lower = 0, upper = 0;
};

/// A mixed-integer linear programme.
struct Milp {
  bool maximize = true;
  std::vector<MilpColumn> columns;
  std::vector<MilpRow> rows;
  /// A solution to start from, a value for each column; empty = none.
  std::vector<double> start;
};

constexpr double kNoLimit = 1e30;

struct MilpSolution {
  std::vector<double> values;  // of the columns; of integers whole numbers
  double objective = 0;
  /// No solution is beyond it.
  double bound = 0;
};

/// The best solution, to within `gap` of its objective; none if there is no solution at all. On one thread, and equal
/// input gives equal output. Where it looked at `most_nodes` nodes the best so far, if any. COIN-OR's Cbc.
std::optional<MilpSolution> solve(const Milp& milp, double gap, int most_nodes);

}  // namespace frostpipe
