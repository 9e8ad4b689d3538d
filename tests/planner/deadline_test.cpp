// Oracle: a plan for every hundredth of the run; the latest one within the budget is expected.
#include "planner/deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/make_plan.h"
#include "planner/run_planner.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

PlanOptions deadline_options(PlanMethod method) {
  PlanOptions options;
  options.method = method;
  options.global_batch_size = 8;
  options.num_steps = 200;
  options.tokens = test::kSyntheticTokens;
  options.forecast = std::vector<FreezeEvent>{{60, 1}, {90, 3}};
  return options;
}

std::vector<test::SyntheticLayer> random_layers(std::mt19937& random) {
  std::vector<test::SyntheticLayer> layers(8);
  for (auto& layer : layers) {
    const auto draw = [&] { return static_cast<Nanoseconds>(1'000'000 + random() % 9'000'000); };
    layer = {.forward_ns = draw(),
             .input_gradient_ns = draw(),
             .weight_gradient_ns = draw(),
             .frozen_forward_ns = draw() / 10,
             .parameter_count = 1000};
  }
  return layers;
}

TEST(PlanForDeadline, TakesTheLatestOfAllHundredthsThatIsInTime) {
  std::mt19937 random(71);
  for (const PlanMethod method : {PlanMethod::pipetransformer, PlanMethod::freeze_only}) {
    for (int round = 0; round < 5; ++round) {
      const Profile profile = test::synthetic_profile(3, random_layers(random));
      const Cluster cluster = test::free_cluster(2);
      std::vector<Nanoseconds> times;  // index: hundredths before the first freeze
      for (int hundredths = 0; hundredths <= 100; ++hundredths) {
        PlanOptions options = deadline_options(method);
        options.forecast->clear();
        for (const auto& [step, frozen] : {std::pair(60, 1), {90, 3}}) {
          const int later = std::max(1, step + 2 * hundredths - 60);
          if (later < 200) options.forecast->push_back({later, frozen});
        }
        times.push_back(predicted_run_ns(std::get<TrainingPlan>(make_plan({profile, cluster, options}))));
      }
      EXPECT_LT(times.front(), times.back());
      for (const int wanted : {0, 17, 50, 99, 100}) {
        const Nanoseconds deadline = times[wanted];
        int latest = 100;
        while (times[latest] > deadline) --latest;
        const auto made = plan_for_deadline({profile, cluster, deadline_options(method)}, deadline);
        ASSERT_TRUE(std::holds_alternative<DeadlinePlan>(made));
        const DeadlinePlan& plan = std::get<DeadlinePlan>(made);
        EXPECT_EQ(plan.delay_steps, 2 * latest - 60) << to_string(method) << " " << round;
        EXPECT_EQ(plan.predicted_ns, times[latest]);
        EXPECT_NO_THROW(validate(plan.plan, profile.model, "plan"));
      }
      const auto none = plan_for_deadline({profile, cluster, deadline_options(method)}, times.front() - 1);
      EXPECT_THAT(std::get<Infeasible>(none).reason,
                  testing::HasSubstr("as early as the forecast allows, the run takes"));
    }
  }
}

TEST(PlanForDeadline, SaysHowMuchIsStillTrained) {
  // 3 blocks, 200 steps, shifted so that the first block freezes after 100 steps and the other two after 130: (100 +
  // 130 + 130) of 600.
  std::mt19937 random(72);
  const Profile profile = test::synthetic_profile(3, random_layers(random));
  PlanOptions options = deadline_options(PlanMethod::freeze_only);
  options.forecast = std::vector<FreezeEvent>{{100, 1}, {130, 3}};
  const Nanoseconds time =
      predicted_run_ns(std::get<TrainingPlan>(make_plan({profile, test::free_cluster(2), options})));
  const auto made =
      plan_for_deadline({profile, test::free_cluster(2), deadline_options(PlanMethod::freeze_only)}, time);
  EXPECT_EQ(std::get<DeadlinePlan>(made).delay_steps, 40);
  EXPECT_DOUBLE_EQ(std::get<DeadlinePlan>(made).trained_share, 360.0 / 600);
}

}  // namespace
}  // namespace frostpipe
