#include "tests/operators/planner/random_problem.h"

#include <random>

namespace frostpipe {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : generator_(seed) {}
  int between(int least, int most) {
    return least + static_cast<int>(generator_() % static_cast<std::uint64_t>(most - least + 1));
  }

 private:
  std::mt19937_64 generator_;
};

OperatorMachine random_machine(Dice& dice, int devices) {
  OperatorMachine machine;
  for (int d = 0; d < devices; ++d)
    machine.devices.push_back({.device_class = std::string(1, static_cast<char>('a' + d)), .node = d});
  machine.between_nodes = {.latency_ns = dice.between(0, 50), .bandwidth_bytes_per_second = 1'000'000'000};
  machine.shared_ports = dice.between(0, 1) == 1;
  machine.message_bytes_per_cpu_second = dice.between(0, 3) == 0 ? 4'000'000'000 : 0;
  return machine;
}

}  // namespace

OperatorProblem random_problem(std::uint64_t seed, int devices, int num_operators) {
  Dice dice(seed);
  OperatorProblem problem;
  problem.machine = random_machine(dice, devices);
  problem.graph = {.net = "random", .batch = dice.between(2, 16)};
  const bool has_update = dice.between(0, 1) == 1;
  const auto add_edge = [&](int from, int to) {
    const OperatorKind read = problem.graph.operators[from].kind, reader = problem.graph.operators[to].kind;
    const auto kind = reader == OperatorKind::update     ? OperatorEdgeKind::weight_gradient
                      : read == OperatorKind::statistics ? OperatorEdgeKind::statistics
                                                         : OperatorEdgeKind::samples;
    problem.graph.edges.push_back({.from = from, .to = to, .kind = kind});
  };
  for (int op = 0; op < num_operators; ++op) {
    Operator one{.name = std::to_string(op), .layer = op, .output_bytes = dice.between(0, 400)};
    one.weight_bytes = dice.between(0, 300);
    if (op % 3 == 1) one.kind = OperatorKind::statistics;
    const int left = num_operators - op;
    if (has_update && left <= 2) {
      one.kind = left == 2 ? OperatorKind::weight_gradient : OperatorKind::update;
      one.layer = 0;  // a forward
      one.weight_bytes = problem.graph.operators[0].weight_bytes;
    }
    const int work = dice.between(50, 1000);
    for (int d = 0; d < devices; ++d)
      one.times.push_back({.device_class = problem.machine.devices[d].device_class,
                           .overhead_ns = dice.between(1, 30),
                           .work_ns = work * (d + 1) * dice.between(10, 20) / 10});
    problem.graph.operators.push_back(one);
    const bool is_update = one.kind == OperatorKind::update;
    if (op > 0 && (is_update || dice.between(0, 3) > 0)) add_edge(op - 1, op);
    if (op > 1 && !is_update && dice.between(0, 2) == 0) {
      const int from = dice.between(0, op - 2);
      if (problem.graph.operators[from].kind == OperatorKind::forward) add_edge(from, op);
    }
  }
  return problem;
}

}  // namespace frostpipe
