#include "tests/operators/planner/brute_force.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "operators/planner/lower_bound.h"
#include "operators/planner/make_operator_plan.h"
#include "tests/operators/planner/random_problem.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kLongest = std::numeric_limits<Nanoseconds>::max();

/// Simulates all orders of the devices' operators.
Nanoseconds best_order_by_simulator(const OperatorProblem& problem, const OperatorTasks& tasks) {
  std::vector<std::vector<int>> order(problem.machine.devices.size());
  for (const auto& task : tasks.tasks) order[task.device].push_back(task.op);
  for (auto& operators : order) std::ranges::sort(operators);
  Nanoseconds best = kLongest;
  for (bool has_next = true; has_next;) {
    if (const auto run = run_in_order(tasks, problem.machine, order)) best = std::min(best, run->makespan_ns);
    has_next =
        std::ranges::any_of(order, [](auto& operators) { return std::ranges::next_permutation(operators).found; });
  }
  return best;
}

/// Tries all placements with all orders, without pruning.
Nanoseconds best_by_simulator(const OperatorProblem& problem, OperatorPlacement placement) {
  if (placement.size() == problem.graph.operators.size())
    return best_order_by_simulator(problem, tasks_of(problem.graph, problem.machine, placement));
  const bool is_split = is_split_by_samples(problem.graph.operators[placement.size()].kind);
  Nanoseconds best = kLongest;
  placement.emplace_back();
  for (const auto& ranges : is_split ? candidate_ranges(problem) : OperatorPlacement{{}}) {
    placement.back() = ranges;
    best = std::min(best, best_by_simulator(problem, placement));
  }
  return best;
}

TEST(BruteForce, CutsOffNothingThatIsBetter) {
  for (std::uint64_t seed = 2000; seed < 2060; ++seed) {
    const auto problem = random_problem(seed, 2, seed % 10 == 0 ? 4 : 3);
    const Nanoseconds best = best_by_simulator(problem, {});
    EXPECT_EQ(best_by_brute_force(problem, kLongest), best) << seed;
    EXPECT_EQ(best_by_brute_force(problem, best), best) << seed;
    EXPECT_EQ(best_by_brute_force(problem, best + 1), best) << seed;
  }
}

// Graphs of 3 to 8 operators, equally many of each size, half of them on 2 devices and half on 3.
TEST(OperatorPlanner, IsNearBruteForceAndNeverBelowTheBound) {
  constexpr int kGraphs = 500;
  double sum = 0, largest = 0;
  for (int graph = 0; graph < kGraphs; ++graph) {
    const auto problem = random_problem(static_cast<std::uint64_t>(graph), 2 + graph % 2, 3 + graph / 2 % 6);
    validate(problem.graph, "random");
    const auto plan = make_operator_plan(problem, OperatorMethod::mtrain);
    const Nanoseconds best = best_by_brute_force(problem, plan.predicted_ns);
    EXPECT_LE(plan.lower_bound_ns, best) << graph;
    const double gap = static_cast<double>(plan.predicted_ns - best) / static_cast<double>(best);
    sum += gap;
    largest = std::max(largest, gap);
  }
  EXPECT_LE(sum / kGraphs, 0.05);
  EXPECT_LE(largest, 0.20);
  RecordProperty("mean_gap_percent", std::to_string(100 * sum / kGraphs));
  RecordProperty("largest_gap_percent", std::to_string(100 * largest));
}

TEST(OperatorPlanner, IsNotSlowerThanABaseline) {
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
    const auto problem = random_problem(seed, 3, 3 + static_cast<int>(seed % 6));
    const auto plan = make_operator_plan(problem, OperatorMethod::mtrain);
    for (const OperatorMethod baseline : kOperatorBaselines)
      EXPECT_LE(plan.predicted_ns, make_operator_plan(problem, baseline).predicted_ns);
  }
}

}  // namespace
}  // namespace frostpipe
