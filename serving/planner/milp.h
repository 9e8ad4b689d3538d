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

constexpr double kUnbounded = 1e30;

struct MilpSolution {
  std::vector<double> values;  // of the columns; of integers whole numbers
  double objective = 0;
  /// No solution is beyond it.
  double bound = 0;
};

/// How much is searched before it is cut; no clock, so that equal input gives equal output.
struct MilpLimits {
  int nodes = 0;
  int iterations = 0;  // of the simplex method, all nodes together
};

/// The best solution, to within `gap` of its objective; none if there is no solution at all. On one thread, and equal
/// input gives equal output. At its limits the best so far, if any, with a bound that says how far it can be. COIN-OR's
/// Cbc.
std::optional<MilpSolution> solve(const Milp& milp, double gap, const MilpLimits& limits);

}  // namespace frostpipe
