// Oracle: invariants of the timeline over random plans and loads.
#include "serving/simulator/simulate_serving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <tuple>

#include "serving/simulator/arrivals.h"
#include "tests/serving/simulator/serving_plans.h"

namespace frostpipe {
namespace {

using test::kMs;
using test::plan_of;
using test::pool;

constexpr Nanoseconds kWindow = 2'000 * kMs;

/// One or two pipelines of one to three pools, batches up to 4.
ServingPlan random_plan(std::mt19937_64& random) {
  std::vector<std::vector<ServingPartition>> pipelines(1 + random() % 2);
  for (auto& partitions : pipelines) {
    const std::size_t num_partitions = 1 + random() % 3, batch = 1 + random() % 4;
    for (std::size_t i = 0; i < num_partitions; ++i) {
      std::vector<Nanoseconds> times = {static_cast<Nanoseconds>(2 + random() % 9)};
      while (times.size() < batch) times.push_back(times.back() + static_cast<Nanoseconds>(random() % 5));
      partitions.push_back(pool(static_cast<int>(1 + random() % 5), times, i > 0 ? random() % 4 : 0));
      partitions.back().share = static_cast<int>(1 + random() % 2);
      if (i > 0) partitions.back().latency_ns = static_cast<Nanoseconds>(random() % 2) * kMs;
    }
  }
  return plan_of(static_cast<Nanoseconds>(40 + random() % 60) * kMs, pipelines, static_cast<int>(1 + random() % 3));
}

using Resource = std::tuple<std::string, int, int, int>;  // kind, pipeline, partition, device or server

std::map<Resource, std::vector<std::pair<Nanoseconds, Nanoseconds>>> taken_times(const ServingPlan& plan,
                                                                                 const ServingRun& run) {
  std::map<Resource, std::vector<std::pair<Nanoseconds, Nanoseconds>>> taken;
  for (const ServingSpan& span : run.timeline) {
    const auto server = [&](int partition, int device) {
      return device / (plan.device_classes[0].devices_per_server *
                       plan.models[0].pipelines[span.pipeline].partitions[partition].share);
    };
    const std::pair time(span.begin_ns, span.end_ns);
    if (span.kind == ServingSpan::Kind::compute) {
      taken[{"device", span.pipeline, span.partition, span.virtual_device}].push_back(time);
    } else {
      const int from = span.partition - 1;
      taken[{"uplink", span.pipeline, from, server(from, span.sender)}].push_back(time);
      taken[{"downlink", span.pipeline, span.partition, server(span.partition, span.virtual_device)}].push_back(time);
    }
  }
  return taken;
}

class AnyServing : public ::testing::TestWithParam<DataPlane> {
 protected:
  void for_random_runs(const std::function<void(const ServingPlan&, const ServingRun&)>& check) {
    std::mt19937_64 random(21);
    for (int round = 0; round < 60; ++round) {
      SCOPED_TRACE(round);
      const ServingPlan plan = random_plan(random);
      const double rate = 50 + static_cast<double>(random() % 900);
      const auto process = round % 2 == 0 ? ArrivalProcess::poisson : ArrivalProcess::square;
      const auto arrivals = arrivals_of(process, rate, kWindow, round);
      check(plan,
            simulate_serving(plan, plan.models[0], arrivals, kWindow, {.data_plane = GetParam(), .timeline = true}));
    }
  }
};

TEST_P(AnyServing, NothingIsTakenTwiceAtATime) {
  for_random_runs([](const ServingPlan& plan, const ServingRun& run) {
    for (auto& [resource, times] : taken_times(plan, run)) {
      auto sorted = times;
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t i = 1; i < sorted.size(); ++i) {
        ASSERT_GE(sorted[i].first, sorted[i - 1].second)
            << std::get<0>(resource) << " " << std::get<1>(resource) << " " << std::get<2>(resource);
      }
    }
  });
}

TEST_P(AnyServing, EveryRequestIsAnsweredInTimeOrDropped) {
  std::int64_t answered = 0, dropped = 0;
  for_random_runs([&](const ServingPlan& plan, const ServingRun& run) {
    const ServingSummary summary = summarize(run);
    std::int64_t drops = 0;
    for (const std::int64_t count : summary.drops) drops += count;
    EXPECT_EQ(summary.late, 0) << "both data planes know better than to answer late";
    EXPECT_EQ(summary.in_time + drops, summary.requests);
    std::int64_t left_last_pool = 0;
    for (const PoolUse& pool : run.pools) {
      const auto& partitions = plan.models[0].pipelines[pool.pipeline].partitions;
      if (pool.partition + 1 == static_cast<int>(partitions.size())) left_last_pool += pool.requests;
    }
    EXPECT_EQ(left_last_pool, summary.in_time);
    answered += summary.in_time;
    dropped += drops;
  });
  EXPECT_GT(answered, 1'000);
  EXPECT_GT(dropped, 1'000) << "some loads are too high, or the test says little";
}

TEST_P(AnyServing, BatchesAreWithinThePlanAndBusyTimeIsTheTimelines) {
  for_random_runs([](const ServingPlan& plan, const ServingRun& run) {
    std::map<std::pair<int, int>, Nanoseconds> busy;
    for (const ServingSpan& span : run.timeline) {
      EXPECT_GE(span.requests, 1);
      EXPECT_LE(span.requests, plan.models[0].pipelines[span.pipeline].batch_size);
      if (span.kind != ServingSpan::Kind::compute) continue;
      busy[{span.pipeline, span.partition}] +=
          std::max<Nanoseconds>(0, std::min(span.end_ns, kWindow) - std::min(span.begin_ns, kWindow));
    }
    for (const PoolUse& pool : run.pools) {
      const Nanoseconds expected = busy[{pool.pipeline, pool.partition}];
      EXPECT_EQ(pool.busy_ns, expected);
      EXPECT_LE(pool.busy_ns, kWindow * pool.num_virtual_devices);
    }
  });
}

TEST_P(AnyServing, EqualInputGivesEqualRuns) {
  std::mt19937_64 random(5);
  const ServingPlan plan = random_plan(random);
  const auto arrivals = arrivals_of(ArrivalProcess::mmpp, 300, kWindow, 1);
  EXPECT_EQ(test::serve(plan, arrivals, GetParam()), test::serve(plan, arrivals, GetParam()));
}

TEST_P(AnyServing, StopsWhereMoreIsDroppedThanAskedFor) {
  const ServingPlan plan = plan_of(20 * kMs, {{pool(1, {10})}});
  const auto arrivals = arrivals_of(ArrivalProcess::even, 1'000, kWindow, 1);
  const ServingRun run =
      simulate_serving(plan, plan.models[0], arrivals, kWindow, {.data_plane = GetParam(), .max_drops = 5});
  const auto is_dropped = [](const ServedRequest& request) { return request.drop.has_value(); };
  EXPECT_LT(run.requests.size(), 100U);
  EXPECT_GT(std::count_if(run.requests.begin(), run.requests.end(), is_dropped), 5);
}

TEST_P(AnyServing, NoRequestsAreServedAtOnce) {
  const ServingPlan plan = plan_of(20 * kMs, {{pool(1, {10})}});
  EXPECT_TRUE(test::serve(plan, {}, GetParam()).requests.empty());
}

INSTANTIATE_TEST_SUITE_P(DataPlanes, AnyServing, ::testing::Values(DataPlane::reserved, DataPlane::reactive),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// Oracle: two devices compute batches of two in 12 ms. Three rounds end at 36 ms. Two end at 24 ms, after which a
// single request would end at 34, but a batch of two, which is required for a request at first sight, at 36.
TEST(MostRequestsAtOnce, AreThoseOfTheBatchesThatFitTheObjective) {
  const ServingPlan plan = plan_of(40 * kMs, {{pool(2, {10, 12})}});
  EXPECT_EQ(most_requests_at_once(plan, plan.models[0], 1 * kMs, 64), 12);
  EXPECT_EQ(most_requests_at_once(plan, plan.models[0], 1 * kMs, 5), 5);
  EXPECT_EQ(most_requests_at_once(plan, plan.models[0], 5 * kMs, 64), 8);
  EXPECT_EQ(most_requests_at_once(plan, plan.models[0], 39 * kMs, 64), 1) << "not even one is in time";
}

}  // namespace
}  // namespace frostpipe
