#pragma once
#include <string>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// A part of an iteration's time, as the mean over the ranks that took part.
struct TimeTerm {
  std::string name;
  Nanoseconds predicted_ns = 0;
  Nanoseconds measured_ns = 0;
  bool operator==(const TimeTerm&) const = default;
};

/// Splits the phase's two timelines into forward, backward, cache, gradient reduction, update, and waiting (messages
/// and bubbles: the rest of the iteration). The result is empty if a timeline is missing. The measured timeline is a
/// single step; if that took longer than the median iteration, its terms are scaled down to the median.
std::vector<TimeTerm> time_terms(const PhaseSummary& phase);

/// If predicted and measured iteration differ by 5 % of the measured one or more, returns the term that differs most,
/// with predicted minus measured time: "forward -28.1 ms" if the forwards took 28.1 ms longer than predicted. Waiting
/// is named only if no other term explains a quarter of the difference, since ranks wait for whatever is late. Returns
/// "" otherwise, and if a timeline is missing.
std::string term_that_is_off(const PhaseSummary& phase);

}  // namespace frostpipe
