#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "planner/operators/lower_bound.h"
#include "planner/operators/make_operator_plan.h"

// Brute force over all placements whose operators are whole or split over all devices by their speeds, and over all
// orders of the operators as priorities: whatever is not delayed on purpose.

namespace frostpipe {
namespace {

std::vector<std::vector<int>> all_orders(const OperatorGraph& graph) {
  std::vector<int> order(graph.operators.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int>> orders;
  do {
    const bool is_topological =
        std::ranges::all_of(graph.edges, [&](const OperatorEdge& edge) { return order[edge.from] < order[edge.to]; });
    if (is_topological) orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

class BruteForceOfOrders {
 public:
  explicit BruteForceOfOrders(const OperatorProblem& problem) : problem_(problem), orders_(all_orders(problem.graph)) {
    const auto speeds = speeds_of(problem);
    std::vector<int> devices(speeds.size());
    std::iota(devices.begin(), devices.end(), 0);
    for (const int device : devices) candidates_.push_back(whole_on(problem, device));
    candidates_.push_back(ranges_over(problem, devices, speeds));
    placement_.resize(problem.graph.operators.size());
  }

  Nanoseconds best() {
    place(0);
    return best_;
  }

 private:
  void place(std::size_t op) {
    if (op == placement_.size()) {
      const auto tasks = tasks_of(problem_.graph, problem_.machine, placement_);
      for (const auto& order : orders_)
        best_ = std::min(best_, run_by_priority(tasks, problem_.machine, order).makespan_ns);
      return;
    }
    if (!is_split_by_samples(problem_.graph.operators[op].kind)) return place(op + 1);
    for (const auto& ranges : candidates_) {
      placement_[op] = ranges;
      place(op + 1);
    }
  }

  const OperatorProblem& problem_;
  std::vector<std::vector<int>> orders_;
  std::vector<std::vector<OperatorRange>> candidates_;
  OperatorPlacement placement_;
  Nanoseconds best_ = std::numeric_limits<Nanoseconds>::max();
};

/// On `devices` devices of unequal speeds, which are unrelated by a factor of up to two.
OperatorProblem random_problem(std::uint64_t seed, int devices, int most_operators) {
  std::mt19937_64 random(seed);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  OperatorProblem problem;
  problem.graph = {.net = "random", .batch = between(2, 16)};
  for (int d = 0; d < devices; ++d)
    problem.machine.devices.push_back({.device_class = std::string(1, static_cast<char>('a' + d)), .node = d});
  problem.machine.between_nodes = {.latency_ns = between(0, 50), .bandwidth_bytes_per_second = 1'000'000'000};
  problem.machine.shared_ports = between(0, 1) == 1;
  const int count = between(3, most_operators);
  for (int op = 0; op < count; ++op) {
    Operator one{.name = std::to_string(op), .layer = op, .output_bytes = between(0, 400)};
    one.weight_bytes = between(0, 300);
    if (op % 3 == 1) one.kind = OperatorKind::statistics;
    const int work = between(50, 1000);
    for (int d = 0; d < devices; ++d)
      one.times.push_back({.device_class = problem.machine.devices[d].device_class,
                           .overhead_ns = between(1, 30),
                           .work_ns = work * (d + 1) * between(10, 20) / 10});
    problem.graph.operators.push_back(one);
    const bool reads_statistics = op > 0 && problem.graph.operators[op - 1].kind == OperatorKind::statistics;
    if (op > 0 && between(0, 3) > 0)
      problem.graph.edges.push_back(
          {.from = op - 1,
           .to = op,
           .kind = reads_statistics ? OperatorEdgeKind::statistics : OperatorEdgeKind::samples});
    if (op > 1 && between(0, 2) == 0) {
      const int from = between(0, op - 2);
      if (problem.graph.operators[from].kind == OperatorKind::forward)
        problem.graph.edges.push_back({.from = from, .to = op});
    }
  }
  return problem;
}

TEST(OperatorPlanner, IsNearBruteForceAndNeverBelowTheBound) {
  double sum = 0, largest = 0;
  int count = 0;
  const auto compare = [&](const OperatorProblem& problem) {
    validate(problem.graph, "random");
    const Nanoseconds best = BruteForceOfOrders(problem).best();
    const auto plan = make_operator_plan(problem, OperatorMethod::mtrain);
    EXPECT_LE(plan.lower_bound_ns, best);
    EXPECT_LE(plan.lower_bound_ns, plan.predicted_ns);
    const double ratio = static_cast<double>(plan.predicted_ns) / static_cast<double>(best);
    sum += std::max(0.0, ratio - 1);  // the planner's ranges may be better than all that brute force looks at
    largest = std::max(largest, ratio - 1);
    ++count;
  };
  for (std::uint64_t seed = 0; seed < 350; ++seed) compare(random_problem(seed, 2, 5));
  for (std::uint64_t seed = 350; seed < 490; ++seed) compare(random_problem(seed, 3, 4));
  for (std::uint64_t seed = 490; seed < 500; ++seed) compare(random_problem(seed, 2, 8));
  EXPECT_LE(sum / count, 0.05);
  EXPECT_LE(largest, 0.20);
  RecordProperty("mean_gap_percent", std::to_string(100 * sum / count));
  RecordProperty("largest_gap_percent", std::to_string(100 * largest));
}

TEST(OperatorPlanner, IsNotSlowerThanABaseline) {
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
    const auto problem = random_problem(seed, 3, 8);
    const auto plan = make_operator_plan(problem, OperatorMethod::mtrain);
    for (const OperatorMethod baseline : kOperatorBaselines)
      EXPECT_LE(plan.predicted_ns, make_operator_plan(problem, baseline).predicted_ns);
  }
}

}  // namespace
}  // namespace frostpipe
