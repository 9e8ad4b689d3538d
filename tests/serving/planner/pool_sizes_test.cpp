#include "serving/planner/pool_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "serving/planner/milp.h"

namespace frostpipe {
namespace {

CandidatePipeline random_candidate(std::mt19937& random, std::vector<int> classes) {
  CandidatePipeline candidate;
  for (const int device_class : classes)
    candidate.pools.push_back({.device_class = device_class,
                               .share = 1 + static_cast<int>(random() % 2),
                               .requests_per_second = 1.0 + static_cast<double>(random() % 97)});
  return candidate;
}

/// Up to two models and two classes of up to two devices, candidates of one and two pools.
PoolProblem random_problem(std::mt19937& random, ServingObjective objective) {
  PoolProblem problem{.num_devices = {1 + static_cast<int>(random() % 2), 1 + static_cast<int>(random() % 2)},
                      .prices = {3, 1 + static_cast<double>(random() % 3)},
                      .objective = objective};
  const int num_models = 1 + static_cast<int>(random() % 2);
  for (int n = 0; n < num_models; ++n) {
    auto& model = problem.models.emplace_back();
    model.weight = 1 + static_cast<double>(random() % 3);
    model.required_requests_per_second = 5 + static_cast<double>(random() % 60);
    const std::vector<std::vector<int>> sequences = {{0}, {1}, {0, 1}, {1, 0}, {1, 1}};
    const int num_candidates = 1 + static_cast<int>(random() % 3);
    for (int c = 0; c < num_candidates; ++c)
      model.candidates.push_back(random_candidate(random, sequences[random() % sequences.size()]));
  }
  return problem;
}

/// Returns whether no sequence of max_partitions classes is used twice; a shorter pipeline uses all sequences that
/// begin with its classes.
bool have_places(const std::vector<SizedPipeline>& pipelines, const std::vector<CandidatePipeline>& candidates) {
  int of_class[2] = {0, 0}, of_pair[2][2] = {{0, 0}, {0, 0}};
  for (const auto& pipeline : pipelines) {
    const auto& pools = candidates[pipeline.candidate].pools;
    ++of_class[pools[0].device_class];
    if (pools.size() == 2 && ++of_pair[pools[0].device_class][pools[1].device_class] > 1) return false;
  }
  return of_class[0] <= 2 && of_class[1] <= 2;
}

/// The largest throughput of a model's pipelines over all their sizes, by the devices that they use.
std::map<std::vector<int>, double> all_sizes(const PoolProblem& problem, const PoolProblem::OfModel& model) {
  std::map<std::vector<int>, double> best;
  std::vector<SizedPipeline> pipelines;
  const std::function<void(std::size_t)> choose = [&](std::size_t c) {
    if (c == model.candidates.size()) {
      if (!have_places(pipelines, model.candidates)) return;
      double throughput = 0;
      for (const auto& [index, sizes] : pipelines) throughput += requests_per_second(model.candidates[index], sizes);
      double& most = best[{devices_of(pipelines, model.candidates, 0), devices_of(pipelines, model.candidates, 1)}];
      most = std::max(most, throughput);
      return;
    }
    choose(c + 1);
    const auto& pools = model.candidates[c].pools;
    const auto most = [&](std::size_t i) { return problem.num_devices[pools[i].device_class] * pools[i].share; };
    for (int one = 1; one <= most(0); ++one)
      for (int other = 1; other <= (pools.size() == 2 ? most(1) : 1); ++other) {
        pipelines.push_back({static_cast<int>(c), pools.size() == 2 ? std::vector{one, other} : std::vector{one}});
        choose(c + 1);
        pipelines.pop_back();
      }
  };
  choose(0);
  return best;
}

/// The best of all sizes of all models; 0 (throughput) or infinity (cost) if there are none.
double try_all(const PoolProblem& problem) {
  const bool for_cost = problem.objective == ServingObjective::cost;
  double best = for_cost ? std::numeric_limits<double>::infinity() : 0;
  std::vector<std::map<std::vector<int>, double>> of_models;
  for (const auto& model : problem.models) of_models.push_back(all_sizes(problem, model));
  const std::function<void(std::size_t, int, int, double)> choose = [&](std::size_t n, int first, int second,
                                                                        double least) {
    if (first > problem.num_devices[0] || second > problem.num_devices[1]) return;
    if (n == of_models.size()) {
      if (for_cost)
        best = std::min(best, problem.prices[0] * first + problem.prices[1] * second);
      else
        best = std::max(best, least);
      return;
    }
    for (const auto& [devices, throughput] : of_models[n]) {
      if (for_cost && throughput < problem.models[n].required_requests_per_second) continue;
      choose(n + 1, first + devices[0], second + devices[1], std::min(least, throughput / problem.models[n].weight));
    }
  };
  choose(0, 0, 0, std::numeric_limits<double>::infinity());
  return best;
}

TEST(PoolSizes, EqualTheBestOfAllOnRandomSmallProblems) {
  std::mt19937 random(3);
  int solved = 0;
  for (int round = 0; round < 200; ++round) {
    const auto problem = random_problem(random, ServingObjective::throughput);
    const double expected = try_all(problem);
    const auto sizes = size_pools(problem);
    ASSERT_EQ(sizes.has_value(), expected > 0) << round;
    if (!sizes) continue;
    ++solved;
    EXPECT_NEAR(sizes->value, expected, 2e-5 * expected) << round;
    EXPECT_GE(sizes->bound, expected * (1 - 1e-9)) << round;
  }
  EXPECT_GT(solved, 100);
}

TEST(PoolSizes, AreTheCheapestOfAllOnRandomSmallProblems) {
  std::mt19937 random(4);
  int solved = 0;
  for (int round = 0; round < 200; ++round) {
    const auto problem = random_problem(random, ServingObjective::cost);
    const double expected = try_all(problem);
    const auto sizes = size_pools(problem);
    ASSERT_EQ(sizes.has_value(), std::isfinite(expected)) << round;
    if (!sizes) continue;
    ++solved;
    EXPECT_NEAR(sizes->value, expected, 1e-4) << round;
    EXPECT_LE(sizes->bound, expected + 1e-9) << round;
  }
  EXPECT_GT(solved, 50);
}

TEST(PoolSizes, OfSinglePipelinesAreNeverBetterThanTheBest) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const auto problem = random_problem(random, ServingObjective::throughput);
    const auto single = size_single_pipelines(problem), best = size_pools(problem);
    ASSERT_EQ(single.has_value(), best.has_value());
    if (!best) continue;
    EXPECT_LE(single->value, best->value * (1 + 2e-5));
  }
}

constexpr MilpLimits kEnough{.nodes = 1000, .iterations = 100'000};

// max 5 x + 4 y with 6 x + 4 y <= 24 and x + 2 y <= 6: 21 at (3, 1.5), of whole numbers 20 at (4, 0).
TEST(Milp, FindsTheBestWholeNumbers) {
  Milp milp{
      .columns = {{.upper = 10, .objective = 5, .is_integer = true}, {.upper = 10, .objective = 4, .is_integer = true}},
      .rows = {{.terms = {{0, 6}, {1, 4}}, .lower = -kUnbounded, .upper = 24},
               {.terms = {{0, 1}, {1, 2}}, .lower = -kUnbounded, .upper = 6}}};
  const auto whole = solve(milp, 1e-9, kEnough);
  ASSERT_TRUE(whole);
  EXPECT_NEAR(whole->objective, 20, 1e-6);
  milp.start = {4, 0};  // already the best
  EXPECT_NEAR(solve(milp, 1e-9, kEnough)->objective, 20, 1e-6);
  milp.columns[0].is_integer = milp.columns[1].is_integer = false;
  milp.start.clear();
  EXPECT_NEAR(solve(milp, 1e-9, kEnough)->objective, 21, 1e-6);
  milp.rows.push_back({.terms = {{0, 1}}, .lower = 5, .upper = kUnbounded});
  EXPECT_FALSE(solve(milp, 1e-9, kEnough));
}

/// A random knapsack problem that is not solved at its first node.
Milp random_knapsack(std::mt19937& random) {
  Milp milp;
  MilpRow first{.lower = -kUnbounded}, second{.lower = -kUnbounded};
  for (int i = 0; i < 30; ++i) {
    const auto of = [&](int most) { return 1.0 + static_cast<double>(random() % most); };
    milp.columns.push_back({.upper = 3, .objective = of(1000), .is_integer = true});
    first.terms.emplace_back(i, of(1000));
    second.terms.emplace_back(i, of(1000));
  }
  first.upper = 9001;
  second.upper = 8009;
  milp.rows = {first, second};
  return milp;
}

TEST(Milp, SaysHowFarItsBestIsWhereTheSearchWasCut) {
  std::mt19937 random(6);
  int cut = 0;
  for (int round = 0; round < 20; ++round) {
    auto milp = random_knapsack(random);
    const double best = solve(milp, 1e-9, {.nodes = 1'000'000, .iterations = 1'000'000'000})->objective;
    milp.start.assign(milp.columns.size(), 0);
    for (const MilpLimits limits :
         {MilpLimits{.nodes = 1, .iterations = 1'000'000}, MilpLimits{.nodes = 1'000'000, .iterations = 1}}) {
      const auto cut_off = solve(milp, 1e-9, limits);
      ASSERT_TRUE(cut_off);
      EXPECT_GE(cut_off->bound, best * (1 - 1e-6)) << round;
      EXPECT_LE(cut_off->objective, best * (1 + 1e-6)) << round;
      cut += cut_off->bound > cut_off->objective * (1 + 1e-6);
    }
  }
  EXPECT_GT(cut, 0) << "else this tests nothing";
}

}  // namespace
}  // namespace frostpipe
