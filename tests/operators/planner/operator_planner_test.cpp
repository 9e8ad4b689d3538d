#include <gtest/gtest.h>

#include "base/error.h"
#include "operators/graph/estimated_operators.h"
#include "operators/graph/known_nets.h"
#include "operators/planner/baselines.h"
#include "operators/planner/lower_bound.h"
#include "operators/planner/make_operator_plan.h"

namespace frostpipe {
namespace {

OperatorMachine machine_of(const std::vector<std::string>& classes, Link link) {
  OperatorMachine machine{.between_nodes = link};
  for (std::size_t i = 0; i < classes.size(); ++i)
    machine.devices.push_back({.device_class = classes[i], .node = static_cast<int>(i)});
  return machine;
}

/// One layer with a batch norm, of 12 samples: forward, statistics, normalise. Device b takes twice as long as a.
OperatorGraph one_layer() {
  OperatorGraph graph{.net = "layer", .batch = 12};
  const auto add = [&](const std::string& name, OperatorKind kind, Bytes bytes, Nanoseconds work) {
    graph.operators.push_back({.name = name, .kind = kind, .output_bytes = bytes});
    graph.operators.back().times = {{.device_class = "a", .overhead_ns = 0, .work_ns = work},
                                    {.device_class = "b", .overhead_ns = 0, .work_ns = 2 * work}};
  };
  add("conv", OperatorKind::forward, 1200, 3000);
  add("statistics", OperatorKind::statistics, 8, 300);
  add("normalise", OperatorKind::normalise, 1200, 600);
  graph.edges = {
      {.from = 0, .to = 1}, {.from = 0, .to = 2}, {.from = 1, .to = 2, .kind = OperatorEdgeKind::statistics}};
  return graph;
}

// With 8 and 4 samples, each operator takes 2/3 of its time on both devices: 2000 + 200, then 8 bytes each way with 50
// ns of latency at 1 GB/s, then 400.
TEST(OperatorPlanner, DataParallelismWaitsForTheStatistics) {
  const OperatorProblem problem{.graph = one_layer(), .machine = machine_of({"a", "b"}, {50, 1'000'000'000})};
  const auto plan = make_operator_plan(problem, OperatorMethod::data_parallel);
  EXPECT_EQ(plan.placement[0], (std::vector<OperatorRange>{{0, 0, 8}, {1, 8, 12}}));
  EXPECT_EQ(plan.predicted_ns, 2000 + 200 + 8 + 50 + 400);
  EXPECT_EQ(plan.lower_bound_ns, 2600 + 58 / 3);  // the slower device waits for the message
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::single).predicted_ns, 3900);
  EXPECT_LE(make_operator_plan(problem, OperatorMethod::mtrain).predicted_ns, 2658);
}

// The update is halved: each device sends half of its partial sum and half of the new weights, 200 bytes each.
TEST(OperatorPlanner, AnUpdateIsSplitOverItsHolders) {
  OperatorGraph graph{.net = "update", .batch = 2};
  for (const auto& [name, kind] : {std::pair("f", OperatorKind::forward), std::pair("w", OperatorKind::weight_gradient),
                                   std::pair("u", OperatorKind::update)}) {
    graph.operators.push_back({.name = name, .kind = kind, .weight_bytes = 400});
    graph.operators.back().times = {{.device_class = "a", .overhead_ns = 0, .work_ns = 1000}};
  }
  graph.edges = {{.from = 0, .to = 1}, {.from = 1, .to = 2, .kind = OperatorEdgeKind::weight_gradient}};
  const OperatorProblem problem{.graph = graph, .machine = machine_of({"a", "a"}, {50, 1'000'000'000})};
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::data_parallel).predicted_ns, 500 + 500 + 250 + 500 + 250);
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::single).predicted_ns, 3000);
}

// Each layer's forward takes 10 ns on one device and 1000 ns on the other. Its output arrives there after 60 ns; its
// weights, a million bytes, would take longer than the second forward.
TEST(OperatorPlanner, EarliestFinishSendsTheOutputOfAForwardAndNotItsWeights) {
  OperatorGraph graph{.net = "layers", .batch = 2, .edges = {{.from = 0, .to = 1}}};
  for (const bool first : {true, false})
    graph.operators.push_back({.name = first ? "first" : "second",
                               .layer = first ? 0 : 1,
                               .output_bytes = 10,
                               .weight_bytes = 1'000'000,
                               .times = {{.device_class = "a", .work_ns = first ? 10 : 1000},
                                         {.device_class = "b", .work_ns = first ? 1000 : 10}}});
  const OperatorProblem problem{.graph = graph, .machine = machine_of({"a", "b"}, {50, 1'000'000'000})};
  EXPECT_EQ(earliest_finish_placement(problem), (OperatorPlacement{{{0, 0, 2}}, {{1, 0, 2}}}));
}

TEST(OperatorPlanner, PlansResNet50FasterThanItsBaselines) {
  const std::vector<Hardware> devices = {find_hardware("A100"), find_hardware("V100")};
  const OperatorProblem problem{.graph = estimated_operators(find_net("resnet-50"), 64, devices),
                                .machine = machine_of({"A100", "V100", "A100", "V100"}, {5000, 15'000'000'000})};
  const auto plan = make_operator_plan(problem, OperatorMethod::mtrain);
  for (const OperatorMethod baseline : kOperatorBaselines)
    EXPECT_LT(plan.predicted_ns, make_operator_plan(problem, baseline).predicted_ns);
  EXPECT_GE(plan.predicted_ns, plan.lower_bound_ns);
  EXPECT_EQ(make_operator_plan(problem, OperatorMethod::mtrain), plan);
  validate(plan, "plan.json");
  EXPECT_EQ(operator_plan_from_json(to_json(plan), "plan.json"), plan);
}

TEST(OperatorPlanner, TheSimulatorGetsTheTimesOfTheListSchedule) {
  const std::vector<Hardware> devices = {find_hardware("A100"), find_hardware("V100")};
  for (const bool shared : {false, true}) {
    OperatorProblem problem{.graph = frozen(estimated_operators(find_net("resnet-18"), 32, devices), 5),
                            .machine = machine_of({"A100", "V100", "V100"}, {5000, 15'000'000'000})};
    problem.machine.shared_ports = shared;
    const auto plan = make_operator_plan(problem, OperatorMethod::mtrain, {.num_trials = 100});
    const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
    const auto by_priority = run_by_priority(tasks, plan.machine, places_by_rank(problem));
    auto ranked = plan;
    for (std::size_t device = 0; device < ranked.order.size(); ++device) {
      ranked.order[device].clear();
      for (const int task : by_priority.order[device]) ranked.order[device].push_back(tasks.tasks[task].op);
    }
    const auto in_order = simulate_operators(ranked, tasks, "plan.json");
    EXPECT_EQ(in_order.task_begin_ns, by_priority.task_begin_ns);
    EXPECT_EQ(in_order.transfer_end_ns, by_priority.transfer_end_ns);
    EXPECT_EQ(simulate_operators(plan, tasks, "plan.json").makespan_ns, plan.predicted_ns);
  }
}

TEST(OperatorPlanner, WrongPlansAndProfilesAreNamed) {
  const OperatorProblem problem{.graph = one_layer(), .machine = machine_of({"a", "b"}, {50, 1'000'000'000})};
  const auto message = [&](auto change) -> std::string {
    auto plan = make_operator_plan(problem, OperatorMethod::data_parallel);
    change(plan);
    try {
      validate(plan, "plan.json");
      simulate_operators(plan, tasks_of(plan.graph, plan.machine, plan.placement), "plan.json");
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](OperatorPlan& plan) { plan.placement[1].pop_back(); }),
            "plan.json: placement[1]: must end with sample 12, is 8");
  EXPECT_EQ(message([](OperatorPlan& plan) { plan.placement[1][1].device = 5; }),
            "plan.json: placement[1]: must be on different devices of the machine, is 5");
  EXPECT_EQ(message([](OperatorPlan& plan) { plan.order[1].pop_back(); }),
            "plan.json: order[1]: must list once each operator of which the device has a part, is a list of 2 "
            "operators, not 3");
  EXPECT_EQ(message([](OperatorPlan& plan) { std::swap(plan.order[1][0], plan.order[1][2]); }),
            "plan.json: order: must let every operator begin, is an order in which devices "
            "wait for each other in a cycle");
  const auto refusal = [](const OperatorProblem& wrong) -> std::string {
    try {
      make_operator_plan(wrong, OperatorMethod::mtrain);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  auto unknown = problem;
  unknown.machine.devices[1].device_class = "c";
  EXPECT_EQ(refusal(unknown), "--profile: must have times of every operator on \"c\", is without one of \"conv\"");
  auto endless = problem;
  endless.machine.devices.resize(100'000, endless.machine.devices[0]);
  EXPECT_EQ(refusal(endless), "--cluster: must have at most 256 devices here, is 100000");
}

}  // namespace
}  // namespace frostpipe
