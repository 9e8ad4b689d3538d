#include "cli/report/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cli/markup.h"
#include "tests/cli/report/comparisons.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlReport, IsOneWellFormedPageThatLoadsNothing) {
  const std::string html =
      html_report({.comparison = test::hostile_comparison(), .source = "<here>.json", .cluster = std::nullopt});
  EXPECT_EQ(test::fault_of(html), "");
  for (const char* const outside : {"<script", "http:", "https:", "src=", "@import", "url("})
    EXPECT_THAT(html, Not(HasSubstr(outside))) << outside;
  EXPECT_THAT(html, HasSubstr("&lt;here&gt;.json"));
}

TEST(HtmlReport, HasACardForWhatThereIs) {
  const std::string html =
      html_report({.comparison = test::hostile_comparison(), .source = "x", .cluster = std::nullopt});
  for (const char* const title : {"Runs", "Accuracy, item by item", "Prediction and measurement", "Decisions",
                                  "Over the run", "One iteration of each phase", "Peak memory", "What if", "Labels"})
    EXPECT_THAT(html, HasSubstr("<h2>" + std::string(title) + "</h2>"));
  EXPECT_THAT(html, Not(HasSubstr("Lost ranks, interruptions and undone freezes"))) << "nothing was lost";
  EXPECT_THAT(html, HasSubstr("<b>4.0 %</b><span>largest error of a predicted iteration time")) << "26 against 25 ms";
}

TEST(HtmlReport, SaysNothingOfATestThatWasNotMade) {
  Comparison comparison = test::hostile_comparison();
  const auto page = [&] { return html_report({.comparison = comparison, .source = "x", .cluster = std::nullopt}); };
  EXPECT_THAT(page(), HasSubstr("<span>test accuracy"));
  for (RunSummary& run : comparison.runs) run.num_test_samples = 0;
  EXPECT_THAT(page(), Not(HasSubstr("<span>test accuracy")));
}

TEST(HtmlReport, SaysThatARunWasARehearsal) {
  Comparison comparison = test::hostile_comparison();
  comparison.runs.front().is_emulated = true;
  EXPECT_THAT(html_report({.comparison = comparison, .source = "x", .cluster = std::nullopt}),
              HasSubstr("A rehearsal: emulated devices waited"));
}

TEST(HtmlReport, SaysOfTheRehearsalOfANetWhatItHas) {
  Comparison comparison = test::hostile_comparison();
  comparison.runs.erase(comparison.runs.begin());
  comparison.speedups.clear();
  comparison.accuracies.clear();
  RunSummary& run = comparison.runs.front();
  run.is_emulated = true;
  run.net = NetSummary{.net = "resnet", .device_classes = {"cpu", "cpu"}};
  run.label_names.clear();
  run.num_test_samples = 0;
  for (PhaseSummary& phase : run.phases) phase.measured_peak_memory_bytes.clear();
  const std::string html = html_report({.comparison = comparison, .source = "x", .cluster = std::nullopt});
  EXPECT_THAT(html, HasSubstr("1 rehearsal · 2 ranks · mini-batch 64 · 4 steps · no data</p>"));
  EXPECT_THAT(html, HasSubstr(" rehearsed 1234.5 samples per second.</h1>"));
  EXPECT_THAT(html, HasSubstr("· seed none ·"));
  EXPECT_THAT(html, Not(HasSubstr("<title>measured 0"))) << "no memory was measured";
}

TEST(HtmlReport, GivesTheFiguresOfAllRunsAtItsHead) {
  Comparison comparison = test::hostile_comparison();
  const auto page = [&] { return html_report({.comparison = comparison, .source = "x", .cluster = std::nullopt}); };
  EXPECT_THAT(page(),
              HasSubstr("2 training runs · 2 ranks · mini-batch 64 · 2 epochs (4 steps) · 0 training and 4 test "
                        "samples · 2 labels</p>"));
  EXPECT_THAT(page(), HasSubstr("<p class=\"hint\">Equal data, seed, mini-batch and number of steps. Every"));
  RunSummary& last = comparison.runs.back();
  last.seed = 7;
  last.num_train_samples = 1000;
  const std::string differing = page();
  EXPECT_THAT(differing, HasSubstr("2 epochs (4 steps) · 0 training and 4 test samples / 1,000 training and 4 test "
                                   "samples · 2 labels</p>"));
  EXPECT_THAT(differing, HasSubstr("· seed 0 / 7 ·"));
  EXPECT_THAT(differing,
              HasSubstr("<p class=\"muted\">The runs differ in data (0 / 1,000 training samples) and seed (0 / "
                        "7): compare with care.</p>"))
      << "below the headline, which says how many times as fast a run is";
}

TEST(HtmlReport, NeedsARun) {
  EXPECT_THROW(html_report({.comparison = {}, .source = "x", .cluster = std::nullopt}), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
