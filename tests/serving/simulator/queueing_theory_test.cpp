// Oracles: closed forms and recursions of queueing theory, for batches of one request without drops.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "serving/simulator/arrivals.h"
#include "tests/serving/simulator/serving_plans.h"

namespace frostpipe {
namespace {

using test::ends_of;
using test::kForever;
using test::kMs;
using test::plan_of;
using test::pool;
using test::serve;

class QueueingTheory : public ::testing::TestWithParam<DataPlane> {};

double mean_latency_ms(const ServingRun& run) {
  double sum = 0;
  for (const ServedRequest& request : run.requests)
    sum += 1e-6 * static_cast<double>(request.end_ns - request.arrival_ns);
  return sum / static_cast<double>(run.requests.size());
}

TEST_P(QueueingTheory, OneDeviceWaitsAsMD1) {
  // M/D/1 (Pollaczek-Khinchine): mean wait = rho D / (2 (1 - rho)). 600,000 requests of 1 ms.
  const ServingPlan plan = plan_of(kForever, {{pool(1, {1})}});
  for (const double rho : {0.3, 0.6, 0.8}) {
    const auto window_ns = static_cast<Nanoseconds>(600e9 / rho);
    const auto arrivals = arrivals_of(ArrivalProcess::poisson, 1'000 * rho, window_ns, 17);
    const ServingRun run = simulate_serving(plan, plan.models[0], arrivals, window_ns, {.data_plane = GetParam()});
    const double wait_ms = rho / (2 * (1 - rho));
    EXPECT_NEAR(mean_latency_ms(run) - 1, wait_ms, 0.03 * wait_ms) << rho;
    EXPECT_NEAR(summarize(run).utilisation[0], rho, 0.01) << rho;
  }
}

TEST_P(QueueingTheory, APoolOfEqualDevicesFollowsItsRecursion) {
  // With c devices in order of arrival, request i begins when it has arrived and request i - c has ended.
  const int devices = 5;
  const auto arrivals = arrivals_of(ArrivalProcess::poisson, 480, 20'000 * kMs, 4);
  const ServingPlan plan = plan_of(kForever, {{pool(devices, {10})}});
  std::vector<Nanoseconds> expected;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Nanoseconds before = i < devices ? 0 : expected[i - devices];
    expected.push_back(std::max(arrivals[i], before) + 10 * kMs);
  }
  EXPECT_EQ(ends_of(serve(plan, arrivals, GetParam())), expected);
}

TEST_P(QueueingTheory, InATandemOfConstantTimesTheOrderDoesNotMatter) {
  // Friedman 1965 (Operations Research 13): departures from tandem queues of constant times are the same in any order
  // of the queues, and the wait is that of the slowest queue. A network card is such a queue.
  const auto arrivals = arrivals_of(ArrivalProcess::poisson, 110, 100'000 * kMs, 9);
  const auto departures = [&](Nanoseconds first, Nanoseconds transfer, Nanoseconds second) {
    return ends_of(serve(plan_of(kForever, {{pool(1, {first}), pool(1, {second}, transfer)}}), arrivals, GetParam()));
  };
  std::vector<Nanoseconds> slowest_alone = ends_of(serve(plan_of(kForever, {{pool(1, {8})}}), arrivals, GetParam()));
  for (Nanoseconds& end : slowest_alone) end += (3 + 5) * kMs;
  EXPECT_EQ(departures(8, 5, 3), slowest_alone);
  EXPECT_EQ(departures(3, 5, 8), slowest_alone);
  EXPECT_EQ(departures(5, 8, 3), slowest_alone);
}

INSTANTIATE_TEST_SUITE_P(DataPlanes, QueueingTheory, ::testing::Values(DataPlane::reserved, DataPlane::reactive),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace frostpipe
