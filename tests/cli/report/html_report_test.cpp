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

TEST(HtmlReport, NeedsARun) {
  EXPECT_THROW(html_report({.comparison = {}, .source = "x", .cluster = std::nullopt}), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
