#include "cli/report/report_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/markup.h"
#include "tests/cli/report/comparisons.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Cluster two_ranks_of(Bytes mebibytes) {
  Cluster cluster;
  cluster.devices.assign(2, {.memory_limit_bytes = mebibytes << 20});
  return cluster;
}

TEST(ReportCharts, AreWellFormedWhateverTheNames) {
  const Comparison comparison = test::hostile_comparison();
  for (const std::string& html : {run_charts(comparison), phase_timelines(comparison),
                                  memory_bars(comparison, two_ranks_of(190)), accuracy_intervals(comparison)}) {
    EXPECT_EQ(test::fault_of(html), "");
    EXPECT_FALSE(html.empty());
  }
}

TEST(ReportCharts, AreEmptyWithoutContent) {
  Comparison bare;
  bare.runs.resize(1);
  EXPECT_EQ(run_charts(bare), "");
  EXPECT_EQ(phase_timelines(bare), "");
  EXPECT_EQ(memory_bars(bare, std::nullopt), "");
  EXPECT_EQ(accuracy_intervals(bare), "");
}

TEST(RunCharts, AreFourOverTimeAndFourOverSteps) {
  const std::string html = run_charts(test::hostile_comparison());
  EXPECT_EQ(test::count_of("<svg class=\"chart\"", html), 8);
  EXPECT_EQ(test::count_of("training time [s]", html), 4);
  EXPECT_EQ(test::count_of("optimizer step", html), 4);
}

TEST(RunCharts, LeaveOutTheLossOfARehearsal) {
  Comparison comparison = test::hostile_comparison();
  for (RunSummary& run : comparison.runs) run.is_emulated = true;
  EXPECT_THAT(run_charts(comparison), Not(HasSubstr("Training loss")));
}

TEST(PhaseTimelines, LeaveOutPhasesWithoutAPicture) {
  // Each run has a trace of only its first phase.
  const std::string html = phase_timelines(test::hostile_comparison());
  EXPECT_EQ(test::count_of("<h3>", html), 2);
  EXPECT_THAT(html, HasSubstr("steps 0 to 1 "));
}

TEST(MemoryBars, ShareOneScale) {
  // The largest is the measured 200 MiB: 180 predicted are at 90 %, the limit of 190 at 95 %.
  const std::string html = memory_bars(test::hostile_comparison(), two_ranks_of(190));
  EXPECT_THAT(html, HasSubstr("width=\"100\" height=\"13\"><title>measured 200 MiB</title>"));
  EXPECT_THAT(html, HasSubstr("x1=\"90\" x2=\"90\" y1=\"2\""));
  EXPECT_THAT(html, HasSubstr("x1=\"95\" x2=\"95\" y1=\"0\""));
  EXPECT_EQ(test::count_of("class=\"bad\"", html), 4) << "rank 0 of each phase of each run is beyond its limit";
  EXPECT_THAT(memory_bars(test::hostile_comparison(), std::nullopt), Not(HasSubstr("class=\"limit\"")));
}

TEST(MemoryBars, AddUpTheDevicesOfARankWithThreads) {
  // One rank of two cores with 190 MiB each has 380 MiB.
  Comparison comparison = test::hostile_comparison();
  for (RunSummary& run : comparison.runs) run.threads_per_rank = 2;
  const std::string html = memory_bars(comparison, two_ranks_of(190));
  EXPECT_THAT(html, HasSubstr("<title>limit 380 MiB</title>"));
  EXPECT_THAT(html, Not(HasSubstr("class=\"bad\"")));
}

TEST(AccuracyIntervals, AreDrawnToScale) {
  // The widest end is 4 points, 146 pixels from the middle at 170: -2 is at 97, +4 at 316, +1 at 206.5.
  const std::string html = accuracy_intervals(test::hostile_comparison());
  EXPECT_THAT(html, HasSubstr("x=\"97\" y=\"6\" width=\"219\""));
  EXPECT_THAT(html, HasSubstr("cx=\"206.5\""));
  EXPECT_THAT(html, HasSubstr("<b>+1.0</b> <span class=\"muted\">(−2.0 to +4.0)</span>"));
}

}  // namespace
}  // namespace frostpipe
