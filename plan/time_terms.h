#pragma once
#include <string>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// A part of an iteration's time, the mean over the ranks that took part.
struct TimeTerm {
  std::string name;
  Nanoseconds predicted_ns = 0;
  Nanoseconds measured_ns = 0;
  bool operator==(const TimeTerm&) const = default;
};

/// forward, backward, cache, gradient reduction, update, and waiting (messages and bubbles: what is left of the
/// iteration). Of the phase's two timelines; empty if one of them is missing. The measured timeline is that of one
/// step, whose terms are scaled to the median iteration.
std::vector<TimeTerm> time_terms(const PhaseSummary& phase);

/// Where the iteration's times differ by 5 % or more, the term that differs most: "forward +28.1 ms" means 28.1 ms
/// longer than predicted. Waiting is named only if no other term explains a quarter of the difference: ranks wait for
/// what is late. Else empty.
std::string term_that_is_off(const PhaseSummary& phase);

}  // namespace frostpipe
