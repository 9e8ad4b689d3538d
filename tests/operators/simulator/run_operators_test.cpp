#include "operators/simulator/run_operators.h"

#include <gtest/gtest.h>

#include <numeric>

#include "operators/simulator/critical_path.h"
#include "tests/operators/planner/random_problem.h"

namespace frostpipe {
namespace {

/// Operators 0 and 1 on `first` and `second`, of 10 and 20 ns, both of which operator 2 on device 2 reads: 100 bytes
/// each, at 1 GB/s and with 50 ns of latency.
std::pair<OperatorTasks, OperatorMachine> two_senders(int first, int second) {
  OperatorMachine machine{.devices = {}, .within_node = {}, .between_nodes = {50, 1'000'000'000}};
  for (int d = 0; d < 3; ++d) machine.devices.push_back({.device_class = "a", .node = d});
  OperatorGraph graph{
      .net = "senders", .batch = 1, .operators = {}, .edges = {{.from = 0, .to = 2}, {.from = 1, .to = 2}}};
  for (int op = 0; op < 3; ++op)
    graph.operators.push_back({.name = std::to_string(op),
                               .kind = OperatorKind::elementwise,
                               .layer = 0,
                               .output_bytes = 100,
                               .weight_bytes = 0,
                               .times = {{.device_class = "a", .overhead_ns = 10 + 10 * (op % 2), .work_ns = 0}}});
  return {tasks_of(graph, machine, {{{first, 0, 1}}, {{second, 0, 1}}, {{2, 0, 1}}}), machine};
}

// The second operator ends at 30, when the first one's message still occupies the link, until 110.
TEST(RunOperators, MessagesOfOneWayFollowOneAnother) {
  const auto [tasks, machine] = two_senders(0, 0);
  const OperatorRun run = run_by_priority(tasks, machine, {0, 1, 2});
  EXPECT_EQ(run.transfer_begin_ns, (std::vector<Nanoseconds>{10, 110}));
  EXPECT_EQ(run.transfer_end_ns, (std::vector<Nanoseconds>{160, 260}));
  EXPECT_EQ(run.makespan_ns, 270);
}

// Two links into one device carry both messages at once; a single port carries them one after the other.
TEST(RunOperators, APortTakesOneMessageAtATime) {
  auto [tasks, machine] = two_senders(0, 1);
  EXPECT_EQ(run_by_priority(tasks, machine, {0, 1, 2}).makespan_ns, 20 + 100 + 50 + 10);
  machine.shared_ports = true;
  EXPECT_EQ(run_by_priority(tasks, machine, {0, 1, 2}).makespan_ns, 10 + 100 + 100 + 50 + 10);
}

TEST(RunOperators, OfDevicesThatWaitForEachOtherThereIsNoRun) {
  const auto [tasks, machine] = two_senders(2, 1);
  EXPECT_EQ(run_in_order(tasks, machine, {{}, {1}, {0, 2}})->makespan_ns, 20 + 100 + 50 + 10);
  EXPECT_FALSE(run_in_order(tasks, machine, {{}, {1}, {2, 0}}));
}

TEST(CriticalPath, SumsUpToTheIteration) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto problem = random_problem(seed, 3, 3 + static_cast<int>(seed % 12));
    std::vector<int> devices = {0, 1, 2};
    const auto placement = uniform_placement(problem, ranges_over(problem, devices, speeds_of(problem)));
    std::vector<int> places(problem.graph.operators.size());
    std::iota(places.begin(), places.end(), 0);
    const auto tasks = tasks_of(problem.graph, problem.machine, placement);
    const OperatorRun run = run_by_priority(tasks, problem.machine, places);
    const CriticalPath path = critical_path(problem.graph, tasks, run);
    Nanoseconds sum = path.transfer_ns + path.statistics_ns + path.waiting_for_link_ns;
    for (const auto& [kind, time_ns] : path.compute_ns) sum += time_ns;
    EXPECT_EQ(sum, run.makespan_ns) << seed;
  }
}

}  // namespace
}  // namespace frostpipe
