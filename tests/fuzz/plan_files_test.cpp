#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "operators/planner/make_operator_plan.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "plan/schedule_rows.h"
#include "plan/summary.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"
#include "tests/fuzz/mutations.h"
#include "tests/fuzz/small_run.h"
#include "tests/serving/plan/examples.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::small_graph;
using test::small_plan;
using test::small_run;

TEST(Fuzz, Profiles) {
  fuzz(to_json(test::synthetic_profile(2, std::vector<test::SyntheticLayer>(6))), [](const std::string& text) {
    const Profile profile = profile_from_json(text, "profile.json");
    if (profile_from_json(to_json(profile), "again") != profile)
      throw std::logic_error("read, written and read again is another profile");
  });
}

TEST(Fuzz, Clusters) {
  Cluster cluster{.name = "c", .devices = {{}, {.node = 1, .memory_limit_bytes = 1 << 20}}};
  cluster.node_pairs = {{0, 1, {}}};
  fuzz(to_json(cluster), [](const std::string& text) {
    const Cluster read = cluster_from_json(text, "cluster.json");
    if (cluster_from_json(to_json(read), "again") != read)
      throw std::logic_error("read, written and read again is another cluster");
  });
}

void read_and_validate(const std::string& text) {
  const TrainingPlan plan = plan_from_json(text, "plan.json");
  if (plan_from_json(to_json(plan), "again") != plan)
    throw std::logic_error("read, written and read again is another plan");
  validate(plan, test::synthetic_model(2), "plan.json");
}

TEST(Fuzz, PlansAndTheirValidation) { fuzz(to_json(small_plan()), read_and_validate); }

TEST(Fuzz, PlansWithRowsOfASchedule) {
  TrainingPlan plan = small_plan();
  plan.phases[0].num_micro_batches = 2;
  set_schedule_rows(plan.phases[0], "mine.csv", {"0F0,0F1,0I0,0W0,0B1", "1F0,1B0,1F1,1I1,1W1"}, "");
  validate(plan, test::synthetic_model(2), "plan.json");
  fuzz(to_json(plan), read_and_validate);
}

TEST(Fuzz, ServingPlans) {
  fuzz(to_json(examples::two_model_plan()), [](const std::string& text) {
    const ServingPlan plan = serving_plan_from_json(text, "plan.json");
    if (serving_plan_from_json(to_json(plan), "again") != plan)
      throw std::logic_error("read, written and read again is another plan");
  });
}

TEST(Fuzz, OperatorPlansAndTheirSimulation) {
  const OperatorProblem problem{.graph = small_graph(),
                                .machine = {.devices = {{.device_class = "cpu"}, {.device_class = "cpu", .node = 1}}}};
  fuzz(to_json(make_operator_plan(problem, OperatorMethod::data_parallel)), [](const std::string& text) {
    const OperatorPlan plan = operator_plan_from_json(text, "plan.json");
    if (operator_plan_from_json(to_json(plan), "again") != plan)
      throw std::logic_error("read, written and read again is another plan");
    simulate_operators(plan, tasks_of(plan.graph, plan.machine, plan.placement), "plan.json");
  });
}

TEST(Fuzz, Runs) {
  fuzz(to_json(small_run()),
       [](const std::string& text) { run_from_json(to_json(run_from_json(text, "run.json")), "again"); });
}

TEST(Fuzz, SchedulesAsCsv) {
  fuzz("0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n",
       [](const std::string& text) { schedule_from_csv(text, "schedule.csv"); });
}

}  // namespace
}  // namespace frostpipe
