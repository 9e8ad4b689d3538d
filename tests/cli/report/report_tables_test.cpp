#include "cli/report/report_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/markup.h"
#include "tests/cli/report/comparisons.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunColour, IsAlwaysTheSameForTheRunThatIsCompared) {
  for (std::size_t runs = 1; runs < 9; ++runs) {
    EXPECT_EQ(run_colour(runs - 1, runs), "run-2");
    for (std::size_t i = 0; i + 1 < runs; ++i) EXPECT_NE(run_colour(i, runs), "run-2");
  }
  EXPECT_EQ(run_colour(0, 8), "run-0");
  EXPECT_EQ(run_colour(1, 8), "run-1");
  EXPECT_EQ(run_colour(2, 8), "run-3");
  EXPECT_EQ(run_colour(5, 8), "run-3") << "three colours in turn";
}

TEST(ReportTables, AreWellFormedWhateverTheNames) {
  const Comparison comparison = test::hostile_comparison();
  for (const std::string& html :
       {runs_table(comparison), phases_table(comparison), what_ifs_table(comparison), labels_table(comparison)}) {
    EXPECT_EQ(test::fault_of(html), "");
    EXPECT_FALSE(html.empty());
  }
  EXPECT_EQ(run_label(0, 1, "<a>"), "<span class=\"dot run-2\"></span>&lt;a&gt;");
}

TEST(RunsTable, GivesSpeedupsOverTheOthers) {
  const std::string html = runs_table(test::hostile_comparison());
  EXPECT_THAT(html, HasSubstr("1.50× <small>1.25–1.75</small>"));
  EXPECT_THAT(html, HasSubstr("75.0 ± 3.0"));
  EXPECT_THAT(html, HasSubstr(">200</td>")) << "the largest rank, in MiB";
  Comparison alone = test::hostile_comparison();
  alone.speedups.clear();
  EXPECT_THAT(runs_table(alone), Not(HasSubstr("over this one")));
}

TEST(RunsTable, GivesNoAccuracyWithoutATest) {
  Comparison comparison = test::hostile_comparison();
  for (RunSummary& run : comparison.runs) run.num_test_samples = 0;
  EXPECT_THAT(runs_table(comparison), Not(HasSubstr("75.0 ± 3.0")));
}

TEST(RunsTable, HasAllFiguresOfTheTests) {
  Comparison comparison = test::hostile_comparison();
  for (RunSummary& run : comparison.runs) run.test_metric = "next-token accuracy";
  comparison.runs.back().test_others = {{"loss", 1.25}, {"<b>", 0.5}};
  const std::string html = runs_table(comparison);
  EXPECT_EQ(test::fault_of(html), "");
  EXPECT_THAT(html, HasSubstr("test next-token accuracy<br>"));
  EXPECT_THAT(html, HasSubstr(">test loss</th>"));
  EXPECT_THAT(html, HasSubstr(">test &lt;b&gt; [%]</th>"));
  EXPECT_THAT(html, HasSubstr(">1.250</td>"));
  EXPECT_THAT(html, HasSubstr(">50.0</td>"));
  EXPECT_THAT(html, HasSubstr(">–</td>")) << "the other runs have none";
}

TEST(PhasesTable, HasARowForEveryPhase) {
  const std::string html = phases_table(test::hostile_comparison());
  EXPECT_EQ(test::count_of("<tr>", html), 1 + 4);
  EXPECT_THAT(html, HasSubstr(">+4.0\u00a0%")) << "26 against 25 ms";
  EXPECT_THAT(html, HasSubstr("2 × 1, 4 micro-batches, 1F1B<br><small>layers [0,3) [3,6), 0 tokens</small>"));
  // The scale is 50 ms for 110 pixels from 4 on: the median of 25 ms lies at 59, its line begins a pixel before.
  EXPECT_THAT(html, HasSubstr("x=\"58\" y=\"1\" width=\"2\""));
}

TEST(WhatIfsTable, IsEmptyWithoutOne) {
  EXPECT_THAT(what_ifs_table(test::hostile_comparison()), HasSubstr("−20.0 %"));
  EXPECT_EQ(what_ifs_table({}), "");
}

TEST(LabelsTable, GivesRecallAndPrecision) {
  // Label 0: 2 of 3 found, 2 of 2 right; label 1: 1 of 1 found, 1 of 2 right.
  const std::string html = labels_table(test::hostile_comparison());
  EXPECT_THAT(html, HasSubstr("66.7 <small>/ 100.0</small>"));
  EXPECT_THAT(html, HasSubstr("100.0 <small>/ 50.0</small>"));
  Comparison other = test::hostile_comparison();
  other.runs[0].label_names = {"others"};
  EXPECT_EQ(labels_table(other), "") << "labels that cannot be compared";
  EXPECT_EQ(labels_table({}), "");
}

TEST(LabelsTable, GivesEachRunItsOwnCountsWhereTheyDiffer) {
  Comparison comparison = test::hostile_comparison();
  EXPECT_THAT(labels_table(comparison), HasSubstr("data-label=\"test items\">3</td>")) << "one count for both runs";
  RunSummary& last = comparison.runs.back();  // 1 of 2 items of the first label, 1 of 1 of the second
  last.test_items = {0, 1, 2};
  last.test_labels = {0, 0, 1};
  last.test_predictions = {0, 1, 1};
  const std::string html = labels_table(comparison);
  EXPECT_EQ(test::fault_of(html), "");
  EXPECT_THAT(html, Not(HasSubstr("data-label=\"test items\"")));
  EXPECT_THAT(html, HasSubstr("base&gt;: test items\">3</td>"));
  EXPECT_THAT(html, HasSubstr(">66.7 <small>/ 100.0</small>"));
  EXPECT_THAT(html, HasSubstr("b&quot;: test items\">2</td>"));
  EXPECT_THAT(html, HasSubstr(">50.0 <small>/ 100.0</small>"));
}

}  // namespace
}  // namespace frostpipe
