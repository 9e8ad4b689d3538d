#include "plan/time_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

constexpr Nanoseconds kMs = 1'000'000;

Span span(int rank, const char* action, Nanoseconds begin_ms, Nanoseconds end_ms) {
  return {.rank = rank,
          .step = 0,
          .action = parse_action(action, "test"),
          .begin_ns = begin_ms * kMs,
          .end_ns = end_ms * kMs};
}

/// Two ranks: F takes 10 ms and B 20 ms on each, and rank 1 waits 10 ms. Measured, F takes 16 ms on rank 0 and 10 on
/// rank 1.
PhaseSummary example() {
  PhaseSummary phase;
  phase.predicted_iteration_ns = 60 * kMs;
  phase.measured_iteration_ns = 66 * kMs;
  phase.predicted_timeline = {.num_ranks = 2,
                              .spans = {span(0, "0F0", 0, 10), span(1, "1RECV_F0", 0, 10), span(1, "1F0", 10, 20),
                                        span(1, "1B0", 20, 40), span(0, "0B0", 40, 60)},
                              .events = {}};
  phase.measured_timeline = {.num_ranks = 2,
                             .spans = {span(0, "0F0", 0, 16), span(1, "1RECV_F0", 0, 16), span(1, "1F0", 16, 26),
                                       span(1, "1B0", 26, 46), span(0, "0B0", 46, 66)},
                             .events = {}};
  return phase;
}

TEST(TimeTerms, AreMeansOverTheRanksAndWaitingIsTheRest) {
  const std::vector<TimeTerm> terms = time_terms(example());
  EXPECT_THAT(terms,
              ::testing::ElementsAre(TimeTerm{"forward", 10 * kMs, 13 * kMs}, TimeTerm{"backward", 20 * kMs, 20 * kMs},
                                     TimeTerm{"cache", 0, 0}, TimeTerm{"gradient reduction", 0, 0},
                                     TimeTerm{"update", 0, 0}, TimeTerm{"waiting", 30 * kMs, 33 * kMs}));
}

TEST(TimeTerms, NamesTheOneThatIsOffMost) {
  PhaseSummary phase = example();
  phase.measured_timeline.spans[4] = span(0, "0B0", 46, 76);  // B is 10 ms longer than predicted, on one of two ranks
  phase.measured_iteration_ns = 76 * kMs;
  EXPECT_EQ(term_that_is_off(phase), "backward -5.0 ms");
  phase.measured_timeline.spans[3] = span(1, "1B0", 26, 66);
  phase.measured_timeline.spans[4] = span(0, "0B0", 66, 106);  // now on both, by 20 ms
  phase.measured_iteration_ns = 106 * kMs;
  EXPECT_EQ(term_that_is_off(phase), "backward -20.0 ms");
}

TEST(TimeTerms, WaitingIsNamedWhereNothingElseExplainsIt) {
  PhaseSummary phase = example();
  for (std::size_t i = 1; i < 5; ++i) {  // the message came 20 ms later; F of rank 0 is as predicted
    phase.measured_timeline.spans[i] = phase.predicted_timeline.spans[i];
    phase.measured_timeline.spans[i].end_ns += 20 * kMs;
    if (i > 1) phase.measured_timeline.spans[i].begin_ns += 20 * kMs;
  }
  phase.measured_timeline.spans[0] = span(0, "0F0", 0, 10);
  phase.measured_iteration_ns = 80 * kMs;
  EXPECT_EQ(term_that_is_off(phase), "waiting -20.0 ms");
}

TEST(TimeTerms, SaysNothingWithoutATimelineOrWithinFivePercent) {
  PhaseSummary phase = example();
  phase.predicted_iteration_ns = 64 * kMs;
  EXPECT_EQ(term_that_is_off(phase), "");
  phase = example();
  phase.measured_timeline = {};
  EXPECT_EQ(term_that_is_off(phase), "");
}

}  // namespace
}  // namespace frostpipe
