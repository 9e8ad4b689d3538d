// Oracles: the published figures, each within the simulator's known error.
#include "papers/published_suites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace frostpipe {
namespace {

PredictionErrors errors_of(const PublishedTable& table, const std::string& group) {
  const std::vector<PublishedGroup> groups = groups_of(table.rows);
  return std::find_if(groups.begin(), groups.end(), [&](const PublishedGroup& one) { return one.name == group; })
      ->errors;
}

double predicted(const PublishedTable& table, const std::string& group, const std::string& run) {
  return std::find_if(table.rows.begin(), table.rows.end(),
                      [&](const PublishedRow& row) { return row.group == group && row.run == run; })
      ->predicted;
}

double error_of(const PublishedRow& row) { return std::abs(row.predicted / row.measured - 1); }

TEST(TerapipeTable, SlicesTakeWhatTheyTook) {
  // The stage times come from the runs with equal slices; the chosen slices follow from them. Only four points are
  // known for the 44B model, and those for 8 and 16 slices are inconsistent: the prediction for its chosen slices is 9
  // % too high.
  const PublishedTable table = terapipe_table();
  EXPECT_LT(errors_of(table, "equal slices").largest, 0.01);
  int chosen = 0;
  for (const PublishedRow& row : table.rows) {
    if (row.group != "chosen slices") continue;
    EXPECT_LT(error_of(row), row.run == "GPT-3 44B (8), chosen" ? 0.10 : 0.05) << row.run;
    ++chosen;
  }
  EXPECT_EQ(chosen, 2);
}

TEST(MegatronTable, DaysAndFiguresAreThePapers) {
  const PublishedTable table = megatron_table();
  EXPECT_LT(errors_of(table, "Table 2").largest, 0.08);
  for (const char* const figure : {"Figure 11", "Figure 12", "Figure 13", "Figure 18"})
    EXPECT_LT(errors_of(table, figure).largest, 0.07) << figure;
}

TEST(ZeroBubbleTable, BubbleRatesAreThePapers) {
  // Exact to four digits, except where the paper leaves out p latencies; the automatic schedule is ours, and at most
  // 0.005 worse.
  const PublishedTable table = zero_bubble_table();
  for (const char* const schedule : {"1F1B", "ZB-H1", "ZB-H2"})
    EXPECT_LT(errors_of(table, schedule).largest, 0.002) << schedule;
  for (const PublishedRow& row : table.rows) {
    if (row.group == "ZB-2p, automatic") {
      EXPECT_LT(row.predicted, row.measured + 0.005) << row.run;
    }
  }
}

TEST(PipetransformerPaperTable, IsWithinTenPercentButForFreezingAlone) {
  // There the paper's figure contradicts its table.
  for (const PublishedRow& row : pipetransformer_paper_table().rows)
    EXPECT_LT(error_of(row), row.run == "freezing alone" ? 0.28 : 0.10) << row.group << ", " << row.run;
}

TEST(Pipedream2bwTable, GainsAreNearThePapers) {
  const PublishedTable table = pipedream_2bw_table();
  EXPECT_NEAR(predicted(table, "over tensor parallelism", "3.8B, 16 devices"), 20, 6);
  EXPECT_NEAR(predicted(table, "over flushing", "2.2B, batch 2048"), 1.15, 0.07);
  EXPECT_NEAR(predicted(table, "over flushing", "2.2B, batch 512"), 1.6, 0.28);  // the paper's own bound is 15/8
}

}  // namespace
}  // namespace frostpipe
