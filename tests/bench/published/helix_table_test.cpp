// Oracles: the rule by which requests are let in, Little's law, sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/published/helix_simulation.h"
#include "bench/published/published_suites.h"
#include "tests/bench/published/helix_folder.h"

namespace frostpipe {
namespace {

using test::HelixFolder;
using ::testing::HasSubstr;

HelixSimulated simulated(const std::string& folder, const HelixResult& result) {
  const HelixData data = load_helix_data(folder);
  const auto cluster = helix_cluster(data, "two", "LLaMA-30B", "a100", "helix");
  return simulate_helix(data, std::get<GenerationCluster>(cluster), result, *load_of(result));
}

HelixResult run_of(const std::string& method, const std::string& sub_cluster, bool is_online) {
  return {.section = "6.3",
          .cluster = "two",
          .sub_cluster = sub_cluster,
          .model = "LLaMA-30B",
          .method = method,
          .is_online = is_online};
}

TEST_F(HelixFolder, AsManyRequestsFitAsTheRuleSays) {
  // 1,000 tokens each of a cache of 10,000: eight are at most 0.85 of it, a ninth would be more.
  const HelixSimulated run = simulated(folder_.string(), run_of("helix", "a100", false));
  EXPECT_NEAR(run.in_flight, 8, 1e-9);
  // Of 240 tokens one is the prompt's; in flight are those that decode and those with their prompt.
  EXPECT_NEAR(run.decode_tokens_per_s * (run.decode_s + run.prompt_s / 239), 8, 0.05);
}

TEST_F(HelixFolder, LoadsAreThoseOfTheArtifact) {
  EXPECT_EQ(load_of(run_of("swarm", "", false))->value, 50);
  EXPECT_EQ(load_of(run_of("helix", "a100", true))->value, 600);
  EXPECT_EQ(load_of(run_of("helix", "", false))->kind, LoadKind::filling);
  EXPECT_FALSE(load_of(run_of("petals", "", true)).has_value());
  HelixResult placed = run_of("petals", "", false);  // on Helix's paths
  placed.section = "6.6";
  EXPECT_EQ(load_of(placed)->kind, LoadKind::filling);
}

TEST_F(HelixFolder, ArrivalsAreTokensOverAMeanRequest) {
  EXPECT_DOUBLE_EQ(simulated(folder_.string(), run_of("helix", "a100", true)).arrivals_per_s, 0.6);
}

TEST_F(HelixFolder, CombinedRowsAreTheSumsOfTheirParts) {
  write_results(
      "6.3,two,a100,measured,LLaMA-30B,offline,helix,100,0.5,0.25\n"
      "6.3,two,a100,measured,LLaMA-30B,offline,helix,50,,\n"
      "6.3,two,combined,measured,LLaMA-30B,offline,helix,110,,\n"
      "6.3,two,,simulated,LLaMA-30B,offline,helix,99,,\n");
  const PublishedTable table = helix_table(folder_.string());
  ASSERT_EQ(table.rows.size(), 5U);  // tokens/s and both latencies of a part, tokens/s of the other and of the sum
  EXPECT_EQ(table.rows[0].what, "tokens/s, as many requests as fit");
  EXPECT_EQ(table.rows[1].measured, 0.5);
  EXPECT_EQ(table.rows[4].what, "tokens/s, sums of parts");
  EXPECT_EQ(table.rows[4].predicted, table.rows[0].predicted + table.rows[3].predicted);
  EXPECT_THAT(table.rows[4].note, HasSubstr("Helix's simulator: 99.0 (-10.0 %)"));
}

TEST_F(HelixFolder, PlacementsThatLackLayersDoNotCount) {
  write_results("6.3,two,,measured,LLaMA-30B,offline,helix,100,,\n");
  write("helix/placements.json",
        R"({"two": {"LLaMA-30B": {"helix": [{"machine": 0, "first_layer": 0, "layers": 30}]}}})");
  const PublishedTable table = helix_table(folder_.string());
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_FALSE(table.rows[0].counts);
  EXPECT_THAT(table.rows[0].note, HasSubstr("its machines do not hold all layers"));
}

TEST_F(HelixFolder, RowsThatCannotBeMadeSayWhyAndDoNotCount) {
  write_results(
      "6.3,two,l4,measured,LLaMA-30B,offline,helix,100,0.5,0.25\n"
      "6.3,two,combined,measured,LLaMA-30B,offline,helix,110,,\n"
      "6.9,two,a100,measured,LLaMA-30B,online,helix,58,0.5,0.25\n");
  const PublishedTable table = helix_table(folder_.string());
  ASSERT_EQ(table.rows.size(), 3U);
  for (const PublishedRow& row : table.rows) EXPECT_FALSE(row.counts) << row.run;
  EXPECT_THAT(table.rows[0].note, HasSubstr("no placement two LLaMA-30B helix_l4"));
  EXPECT_THAT(table.rows[1].note, HasSubstr("a part of it is left out"));
  EXPECT_THAT(table.rows[2].note, HasSubstr("its load is not recorded"));
}

}  // namespace
}  // namespace frostpipe
