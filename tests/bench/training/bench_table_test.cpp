#include "bench/training/bench_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace frostpipe {
namespace {

BenchRun run_of(std::string configuration, std::uint64_t seed, double speed, std::vector<bool> right) {
  double correct = 0;
  for (const bool one : right) correct += one;
  return {.dataset = "d",
          .configuration = std::move(configuration),
          .seed = seed,
          .samples_per_second = speed,
          .wall_seconds = 1,
          .test_accuracy = correct / static_cast<double>(right.size()),
          .peak_memory_bytes = 5,
          .right = std::move(right)};
}

TEST(BenchTable, RatiosArePairedBySeedAndDifferencesByItem) {
  const std::vector<BenchRow> rows = bench_rows({
      run_of("data_parallel", 1, 10, {true, true, false, true}),
      run_of("static_gpipe", 1, 4, {true, true, true, true}),
      run_of("static_1f1b", 1, 8, {true, true, true, true}),
      run_of("elastic", 1, 16, {true, false, false, true}),
      run_of("data_parallel", 2, 20, {true, true, true, true}),
      run_of("static_1f1b", 2, 16, {true, true, true, true}),
      run_of("elastic", 2, 64, {true, true, true, false}),
  });
  ASSERT_EQ(rows.size(), 4U);
  const BenchRow& elastic = rows[3];
  EXPECT_EQ(elastic.configuration, "elastic");
  EXPECT_EQ(elastic.num_seeds, 2);
  EXPECT_DOUBLE_EQ(elastic.samples_per_second, 40);
  // Ratios to static_1f1b, the faster static one: 2 and 4, geometric mean sqrt(8).
  EXPECT_NEAR(elastic.to_static.geometric_mean, std::sqrt(8.0), 1e-12);
  EXPECT_DOUBLE_EQ(elastic.to_static.low, 2);
  EXPECT_DOUBLE_EQ(elastic.to_static.high, 4);
  EXPECT_NEAR(elastic.to_data_parallel.geometric_mean, std::sqrt(1.6 * 3.2), 1e-12);
  // Differences 0 -1 0 0 and 0 0 0 -1: mean -1/4, variance 1/4 - 1/16 = 3/16, standard error sqrt(3/16/8).
  EXPECT_DOUBLE_EQ(elastic.difference, -0.25);
  EXPECT_NEAR(elastic.high, -0.25 + 1.96 * std::sqrt(3.0 / 16 / 8), 1e-12);
  EXPECT_NEAR(elastic.low, -0.25 - 1.96 * std::sqrt(3.0 / 16 / 8), 1e-12);
  EXPECT_FALSE(rows[0].has_difference) << "data_parallel is the reference";
  // The frontier: elastic is fastest; nothing faster than data_parallel (accuracy 7/8, speed 15) is more accurate; and
  // nothing is more accurate than static_1f1b.
  EXPECT_TRUE(elastic.on_frontier);
  EXPECT_TRUE(rows[0].on_frontier);
  EXPECT_TRUE(rows[2].on_frontier);
}

TEST(BenchTable, TheBestUnfrozenIsTheFastestWhereNothingFroze) {
  const auto frozen = [](std::string configuration, std::uint64_t seed, double speed) {
    BenchRun run = run_of(std::move(configuration), seed, speed, {true, true});
    run.freezes = true;
    return run;
  };
  const auto rows = bench_rows({
      run_of("data_parallel", 1, 10, {true, true}),
      run_of("data_parallel", 2, 11, {true, true}),
      run_of("one_process", 1, 12, {true, true}),
      run_of("one_process", 2, 20, {true, true}),
      frozen("elastic", 1, 24),
      frozen("elastic", 2, 60),
      frozen("elastic_fast", 1, 96),
  });
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[1].to_best_unfrozen, (SpeedRatio{1, 1, 1})) << "one_process, median 16 against 10.5";
  EXPECT_NEAR(rows[0].to_best_unfrozen.geometric_mean, std::sqrt(10. / 12 * 11 / 20), 1e-12);
  // Elastic to one_process, seed by seed: 2 and 3.
  EXPECT_NEAR(rows[2].to_best_unfrozen.geometric_mean, std::sqrt(6.0), 1e-12);
  EXPECT_DOUBLE_EQ(rows[2].to_best_unfrozen.low, 2);
  EXPECT_DOUBLE_EQ(rows[2].to_best_unfrozen.high, 3);
  EXPECT_DOUBLE_EQ(rows[3].to_best_unfrozen.geometric_mean, 8);
  EXPECT_TRUE(rows[2].freezes);
  EXPECT_EQ(bench_rows({frozen("elastic", 1, 24)})[0].to_best_unfrozen, SpeedRatio{}) << "nothing to compare with";
}

TEST(BenchTable, ARunFreezesWhereAnyPhaseDoesAndKeepsItsRanks) {
  RunSummary run;
  run.phases.resize(2);
  EXPECT_FALSE(bench_run_of("d", "c", run).freezes);
  run.phases[1].first_trainable_layer = 1;  // the embedding alone: no whole block
  run.world_size = 3;
  run.threads_per_rank = 2;
  const BenchRun made = bench_run_of("d", "c", run);
  EXPECT_TRUE(made.freezes);
  const BenchRow row = bench_rows({made})[0];
  EXPECT_EQ((std::tuple{row.world_size, row.threads_per_rank, row.freezes}), (std::tuple{3, 2, true}));
}

TEST(BenchTable, ASlowerAndLessAccurateRunIsNotOnTheFrontier) {
  const auto rows = bench_rows({run_of("data_parallel", 1, 10, {true, true}), run_of("elastic", 1, 5, {true, false})});
  EXPECT_TRUE(rows[0].on_frontier);
  EXPECT_FALSE(rows[1].on_frontier);
  EXPECT_EQ(rows[1].to_static, SpeedRatio{}) << "no static run";
}

TEST(BenchTable, ItemsArePairedWhateverTheirOrder) {
  RunSummary run;
  run.test_items = {9, 3};
  run.test_labels = {1, 0};
  run.test_predictions = {1, 1};
  EXPECT_EQ(bench_run_of("d", "c", run).right, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace frostpipe
