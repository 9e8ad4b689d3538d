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

/// A constraint: lower <= sum of coefficient x column <= upper.
struct MilpRow {
  std::vector<std::pair<int, double>> terms;  // column, coefficient
  double lower = 0, upper = 0;
};

/// A mixed-integer linear program.
struct Milp {
  bool maximize = true;
  std::vector<MilpColumn> columns;
  std::vector<MilpRow> rows;
  /// A feasible solution to start from, one value per column; empty = none.
  std::vector<double> start;
};

constexpr double kUnbounded = 1e30;

struct MilpSolution {
  std::vector<double> values;  // one per column; whole numbers for integer columns
  double objective = 0;
  /// No solution has a better objective than this bound.
  double bound = 0;
};

/// Limits of the search. They do not depend on time, so that equal input gives equal output.
struct MilpLimits {
  int nodes = 0;
  int iterations = 0;  // simplex iterations of all nodes together
};

/// Returns the best solution, within a relative `gap` of the optimum; nothing if there is no solution. Runs on one
/// thread and is deterministic. If it reaches its limits, returns the best solution so far, if any, and its bound. Uses
/// COIN-OR Cbc.
std::optional<MilpSolution> solve(const Milp& milp, double gap, const MilpLimits& limits);

}  // namespace frostpipe
