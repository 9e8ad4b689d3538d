#include "planner/plan_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "planner/auto_zero_bubble_plan.h"
#include "planner/make_plan.h"
#include "profiles/device_type.h"
#include "simulator/simulate.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Adds measurements of ranks with two threads, which take `share` of the time of one with a single thread.
Profile measured_with_two_threads(double share) {
  Profile profile = test::two_blocks();
  const auto scaled = [&](Nanoseconds time) { return static_cast<Nanoseconds>(share * static_cast<double>(time)); };
  const std::string two = device_type_with_threads("cpu", 2);
  for (Measurement one : std::vector<Measurement>(profile.measurements)) {
    one.key.device_type = two;
    one.cost.forward_ns = scaled(one.cost.forward_ns);
    one.cost.input_gradient_ns = scaled(one.cost.input_gradient_ns);
    one.cost.weight_gradient_ns = scaled(one.cost.weight_gradient_ns);
    one.cost.frozen_forward_ns = scaled(one.cost.frozen_forward_ns);
    profile.measurements.push_back(one);
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  for (UpdateMeasurement one : std::vector<UpdateMeasurement>(profile.updates)) {
    one.device_type = two;
    profile.updates.push_back(one);
  }
  return profile;
}

int best_threads(const Profile& profile, const Cluster& cluster, PlanMethod method) {
  return best_grouping(plan_groupings(profile, cluster, {.options = test::options_for(method)}, {1, 2}))
      .threads_per_rank;
}

TEST(ThreadsToWeigh, AreAllThatWereMeasuredWhereNothingIsFixed) {
  const Profile profile = measured_with_two_threads(0.5);
  const Cluster cluster = test::free_cluster(2);
  for (const PlanMethod method : {PlanMethod::automatic, PlanMethod::pipetransformer})
    EXPECT_THAT(threads_to_weigh({profile, cluster, test::options_for(method)}), ElementsAre(1, 2))
        << to_string(method);
  EXPECT_THAT(threads_to_weigh({profile, cluster, test::options_for(PlanMethod::static_pipeline)}), ElementsAre(1));
  PlanOptions fixed = test::options_for(PlanMethod::automatic);
  fixed.max_devices = 1;
  EXPECT_THAT(threads_to_weigh({profile, cluster, fixed}), ElementsAre(1));
  EXPECT_THAT(threads_to_weigh({test::two_blocks(), cluster, test::options_for(PlanMethod::automatic)}),
              ElementsAre(1));
}

Profile three_blocks_that_split() {
  return test::synthetic_profile(3, {{.forward_ns = 1000,
                                      .input_gradient_ns = 1100,
                                      .weight_gradient_ns = 700,
                                      .saved_activation_bytes = 100,
                                      .split_backward = SplitBackward{1100, 700, 40}}});
}

/// Stages are equal except for the embedding, and messages are slow, for which ZB-H1 waits.
TEST(PlanRun, AutoZeroBubbleIsZbH1InAnOrderForItsCosts) {
  const Profile profile = three_blocks_that_split();
  PlanRequest request{.options = test::options_for(PlanMethod::static_pipeline)};
  request.options.global_batch_size = request.options.num_micro_batches = 12;
  request.options.pipeline_parallel_size = 4;
  const auto planned = [&](const Cluster& cluster, const std::string& schedule) {
    request.options.schedule = schedule;
    return std::get<AutoPlan>(plan_run(profile, cluster, request).answer).plan;
  };
  Cluster cluster = test::free_cluster(4);
  cluster.intra_node.point_to_point.latency_ns = 1500;
  const Phase by_hand = planned(cluster, "ZB-H1").phases[0];
  const TrainingPlan plan = planned(cluster, kAutoZeroBubble);
  const Phase& phase = plan.phases[0];
  validate(plan, profile.model, "plan");
  EXPECT_EQ(plan_from_json(to_json(plan), "plan"), plan);
  EXPECT_EQ(phase.schedule, kAutoZeroBubble);
  EXPECT_EQ(phase.partition, by_hand.partition);
  EXPECT_LT(phase.predicted.iteration_ns, by_hand.predicted.iteration_ns);
  EXPECT_EQ(phase.predicted.iteration_ns, simulated_iteration_ns(phase, step_settings(plan), profile, cluster));
  const Bytes most = *std::ranges::max_element(by_hand.predicted.peak_memory_bytes);
  EXPECT_GT(*std::ranges::max_element(phase.predicted.peak_memory_bytes), most);  // more memory makes it faster
  for (Device& device : cluster.devices) device.memory_limit_bytes = most;
  EXPECT_LE(*std::ranges::max_element(planned(cluster, kAutoZeroBubble).phases[0].predicted.peak_memory_bytes), most);
}

TEST(PlanRun, AutoZeroBubbleIsInTheAlternativesToo) {
  Cluster cluster = test::free_cluster(4);
  cluster.intra_node.point_to_point.latency_ns = 1500;
  PlanRequest request{.options = test::options_for(PlanMethod::automatic)};
  request.options.schedule = kAutoZeroBubble;
  const auto answer = std::get<AutoPlan>(plan_run(three_blocks_that_split(), cluster, request).answer);
  ASSERT_FALSE(answer.alternatives.empty());
  Nanoseconds before = answer.plan.phases.front().predicted.iteration_ns;
  for (const Phase& phase : answer.alternatives) {
    EXPECT_NE(phase.schedule, "ZB-H1");
    EXPECT_GE(phase.predicted.iteration_ns, before);
    before = phase.predicted.iteration_ns;
  }
}

TEST(PlanRun, AutoZeroBubbleIsInThePlanOfADeadlineToo) {
  const Profile profile = three_blocks_that_split();
  Cluster cluster = test::free_cluster(4);
  cluster.intra_node.point_to_point.latency_ns = 1500;
  PlanRequest request{.options = test::options_for(PlanMethod::pipetransformer_without_replicas),
                      .deadline_ns = Nanoseconds{1} << 40};
  request.options.global_batch_size = request.options.num_micro_batches = 12;
  request.options.pipeline_parallel_size = 4;
  request.options.schedule = kAutoZeroBubble;
  const PlannedRun run = plan_run(profile, cluster, request);
  ASSERT_TRUE(run.deadline_plan);
  EXPECT_EQ(run.deadline_plan->plan.phases[0].schedule, kAutoZeroBubble);
  EXPECT_EQ(run.deadline_plan->plan, std::get<AutoPlan>(run.answer).plan);
  EXPECT_EQ(run.deadline_plan->predicted_ns, predicted_run_ns(run.deadline_plan->plan));
}

TEST(PlanRun, AutoZeroBubblesErrorsNameItAndNotWhatStandsInForIt) {
  const auto error_of = [](const Profile& profile, auto change) -> std::string {
    PlanRequest request{.options = test::options_for(PlanMethod::static_pipeline)};
    request.options.schedule = kAutoZeroBubble;
    change(request.options);
    try {
      plan_run(profile, test::free_cluster(2), request);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  const Profile profile = three_blocks_that_split();
  const auto nothing = [](PlanOptions&) {};
  EXPECT_EQ(error_of(profile, nothing), "");
  for (const PlanMethod method : {PlanMethod::pipedream, PlanMethod::equal_split, PlanMethod::data_parallel,
                                  PlanMethod::pipetransformer_published, PlanMethod::timely_freeze})
    EXPECT_EQ(error_of(profile, [&](PlanOptions& options) { options.method = method; }),
              "schedule AutoZeroBubble: needs a method that leaves the schedule open (auto, static, freeze-only, "
              "pipetransformer or pipetransformer-without-replicas), is used with " +
                  std::string(to_string(method)));
  EXPECT_THAT(
      error_of(profile, [](PlanOptions& options) { options.partitioner = Partitioner::pipetransformer_greedy; }),
      StartsWith("schedule AutoZeroBubble: needs the exact partitioner, is used with "));
  EXPECT_EQ(error_of(test::two_blocks(), nothing),
            "profile of synthetic: must have measured I and W, which AutoZeroBubble has in place of B (profile again), "
            "is without them");
}

TEST(BestGrouping, IsTheOneThatEndsFirst) {
  // Two ranks halve the time, since messages are free, so two threads must take less than half of it.
  EXPECT_EQ(best_threads(measured_with_two_threads(0.4), test::free_cluster(2), PlanMethod::data_parallel), 2);
  EXPECT_EQ(best_threads(measured_with_two_threads(0.6), test::free_cluster(2), PlanMethod::data_parallel), 1);
}

TEST(BestGrouping, FitsWhereAnotherDoesNot) {
  // A whole model takes 9600 bytes; only two ranks of 5000 together have room for it.
  EXPECT_EQ(best_threads(measured_with_two_threads(1), test::free_cluster(2, 5000), PlanMethod::data_parallel), 2);
}

TEST(BestGrouping, FreezesLatestWhereThereIsADeadline) {
  // Both meet the deadline without freezing; the slower one would freeze earlier with half of its time.
  const Profile profile = measured_with_two_threads(0.4);
  const Cluster cluster = test::free_cluster(2);
  const PlanOptions options = test::options_for(PlanMethod::pipetransformer);
  const auto runs = plan_groupings(profile, cluster, {.options = options, .deadline_ns = Nanoseconds{1} << 40}, {1, 2});
  ASSERT_TRUE(runs[0].planned.deadline_plan);
  EXPECT_EQ(runs[0].planned.deadline_plan->delay_steps, runs[1].planned.deadline_plan->delay_steps);
  EXPECT_EQ(best_grouping(runs).threads_per_rank, 2) << "of equal delays the shorter run";
  const Nanoseconds in_between =
      (runs[0].planned.deadline_plan->predicted_ns + 3 * runs[1].planned.deadline_plan->predicted_ns) / 4;
  const auto late = plan_groupings(profile, cluster, {.options = options, .deadline_ns = in_between}, {1, 2});
  EXPECT_EQ(best_grouping(late).threads_per_rank, 2);
}

TEST(PlanRun, IsMakePlanOrMakeAutoPlan) {
  const Profile profile = test::two_blocks();
  const Cluster cluster = test::free_cluster(2);
  const PlanOptions options = test::options_for(PlanMethod::static_pipeline);
  EXPECT_EQ(std::get<AutoPlan>(plan_run(profile, cluster, {.options = options}).answer).plan,
            std::get<TrainingPlan>(make_plan({profile, cluster, options})));
  const PlanOptions any = test::options_for(PlanMethod::automatic);
  const auto found = std::get<AutoPlan>(plan_run(profile, cluster, {.options = any}).answer);
  const auto expected = std::get<AutoPlan>(make_auto_plan({profile, cluster, any}));
  EXPECT_EQ(found.plan, expected.plan);
  EXPECT_EQ(found.lower_bound_ns, expected.lower_bound_ns);
  EXPECT_EQ(found.alternatives, expected.alternatives);
}

TEST(PlanRun, KeepsWhatWasWeighedWhereItIsAskedTo) {
  const Profile profile = test::two_blocks();
  const Cluster cluster = test::free_cluster(2);
  const PlanOptions options = test::options_for(PlanMethod::pipetransformer);
  EXPECT_THAT(plan_run(profile, cluster, {.options = options}).replans, IsEmpty());
  const PlannedRun run = plan_run(profile, cluster, {.options = options, .keep_replans = true});
  ASSERT_FALSE(run.replans.empty());
  EXPECT_EQ(run.replans.front().request.from_step, forecast_cap(2, options.num_steps, options.freeze)[0].from_step);
}

TEST(PlanRun, SaysWhyADeadlineCannotBeKept) {
  const auto run = plan_run(test::two_blocks(), test::free_cluster(2),
                            {.options = test::options_for(PlanMethod::pipetransformer), .deadline_ns = 1});
  EXPECT_FALSE(run.deadline_plan);
  EXPECT_THAT(std::get<Infeasible>(run.answer).reason, HasSubstr("as early as the forecast allows"));
}

}  // namespace
}  // namespace frostpipe
