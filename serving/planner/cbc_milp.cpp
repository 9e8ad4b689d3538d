#include <CbcHeuristic.hpp>
#include <CbcHeuristicRINS.hpp>
#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglProbing.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>

#include "serving/planner/milp.h"

namespace frostpipe {
namespace {

void load(const Milp& milp, OsiClpSolverInterface& solver) {
  const int num_columns = static_cast<int>(milp.columns.size()), num_rows = static_cast<int>(milp.rows.size());
  std::vector<double> lower, upper, objective, row_lower, row_upper, values;
  std::vector<int> rows, columns;
  for (const auto& column : milp.columns) {
    lower.push_back(column.lower);
    upper.push_back(column.upper);
    objective.push_back(milp.maximize ? -column.objective : column.objective);
  }
  for (int row = 0; row < num_rows; ++row) {
    row_lower.push_back(milp.rows[row].lower <= -kUnbounded ? -solver.getInfinity() : milp.rows[row].lower);
    row_upper.push_back(milp.rows[row].upper >= kUnbounded ? solver.getInfinity() : milp.rows[row].upper);
    for (const auto& [column, value] : milp.rows[row].terms) {
      rows.push_back(row);
      columns.push_back(column);
      values.push_back(value);
    }
  }
  CoinPackedMatrix matrix(/*colordered=*/false, rows.data(), columns.data(), values.data(),
                          static_cast<int>(values.size()));
  matrix.setDimensions(num_rows, num_columns);
  solver.loadProblem(matrix, lower.data(), upper.data(), objective.data(), row_lower.data(), row_upper.data());
  for (int column = 0; column < num_columns; ++column)
    if (milp.columns[column].is_integer) solver.setInteger(column);
}

double objective_of(const Milp& milp, const std::vector<double>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += milp.columns[i].objective * values[i];
  return sum;
}

/// Returns the bound that follows from the columns' bounds alone.
double bound_of_columns(const Milp& milp) {
  double sum = 0;
  for (const auto& column : milp.columns) {
    const double one = column.objective * column.lower, other = column.objective * column.upper;
    sum += milp.maximize ? std::max(one, other) : std::min(one, other);
  }
  return sum;
}

void add_cuts(CbcModel& model) {
  CglProbing probing;
  probing.setUsingObjective(1);
  probing.setMaxPass(1);
  probing.setMaxProbe(10);
  probing.setMaxLook(10);
  CglGomory gomory;
  gomory.setLimit(100);
  CglMixedIntegerRounding2 rounding;
  CglKnapsackCover covers;
  model.addCutGenerator(&probing, -1, "Probing");
  model.addCutGenerator(&gomory, -1, "Gomory");
  model.addCutGenerator(&rounding, -1, "MixedIntegerRounding2");
  model.addCutGenerator(&covers, -1, "KnapsackCover");
}

}  // namespace

std::optional<MilpSolution> solve(const Milp& milp, double gap, const MilpLimits& limits) {
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  load(milp, solver);
  CbcModel model(solver);
  model.setLogLevel(0);
  model.solver()->messageHandler()->setLogLevel(0);
  model.setAllowableFractionGap(gap);
  model.setMaximumNodes(limits.nodes);
  model.setMaximumNumberIterations(limits.iterations);
  model.setNumberBeforeTrust(10);
  model.setNumberStrong(5);
  add_cuts(model);
  CbcRounding rounding(model);
  CbcHeuristicRINS rins(model);
  model.addHeuristic(&rounding, "rounding");
  model.addHeuristic(&rins, "RINS");
  if (!milp.start.empty()) {
    const double value = objective_of(milp, milp.start);
    model.setDblParam(CbcModel::CbcCutoffIncrement, gap * std::abs(value));
    model.setBestSolution(milp.start.data(), static_cast<int>(milp.start.size()), milp.maximize ? -value : value,
                          /*check=*/false);
  }
  model.initialSolve();
  MilpSolution result{.values = milp.start};
  // If no solution is better than the start, or none is feasible, there is nothing to search.
  bool is_proven = model.isInitialSolveProvenPrimalInfeasible() || model.solver()->isDualObjectiveLimitReached();
  if (model.isInitialSolveProvenOptimal()) {
    model.branchAndBound();
    is_proven = model.isProvenOptimal() || model.isProvenInfeasible();
    if (model.bestSolution() != nullptr)
      result.values.assign(model.bestSolution(), model.bestSolution() + milp.columns.size());
  }
  if (result.values.empty()) return std::nullopt;
  for (std::size_t i = 0; i < milp.columns.size(); ++i)
    if (milp.columns[i].is_integer) result.values[i] = std::round(result.values[i]);
  result.objective = objective_of(milp, result.values);
  // Solutions within the gap of the best one, and of the start, are not searched for.
  const double closed =
      gap * std::max(std::abs(result.objective), milp.start.empty() ? 0 : std::abs(objective_of(milp, milp.start)));
  result.bound = result.objective + (milp.maximize ? closed : -closed);
  if (!is_proven) {
    const double possible = milp.maximize ? -model.getBestPossibleObjValue() : model.getBestPossibleObjValue();
    const double most = bound_of_columns(milp);
    result.bound = milp.maximize ? std::max(result.bound, std::min(possible, most))
                                 : std::min(result.bound, std::max(possible, most));
  }
  return result;
}

}  // namespace frostpipe
