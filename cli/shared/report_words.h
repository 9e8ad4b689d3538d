#pragma once
#include <string>
#include <string_view>

#include "plan/comparison.h"

namespace frostpipe {

/// Returns the name of a run in a sentence: "one process on all cores", "data parallelism alone", "the best static
/// pipeline", "the elastic run", "the run NAME".
std::string run_in_words(std::string_view name);

/// Returns ", the fastest of the others" if the baseline is the fastest; else an empty text.
std::string fastest_clause(const Comparison& comparison, std::string_view baseline);

/// Says in one sentence how the last run compares with each of the others in speed and accuracy, with intervals for
/// accuracy.
std::string headline(const Comparison& comparison);

/// Says how large a difference in accuracy the test items can show; empty for a single run.
std::string accuracy_sentence(const Comparison& comparison);

/// Returns "1 step", "1,234 steps".
std::string plural(long long count, std::string_view word);

/// Returns "1 rank with 8 threads", "4 ranks with 2 threads each", "4 ranks".
std::string ranks_text(int ranks, int threads);

/// Returns "+12.3 %" or "−12.3 %"; an empty text if either is 0 (nothing predicted, nothing measured).
std::string prediction_error_percent(Nanoseconds predicted, Nanoseconds measured);

/// Returns "+1.2", with one decimal and a true minus sign.
std::string signed_number(double value);

/// Returns "12,345", with separators.
std::string grouped(long long value);

/// Returns the time of all changes of the layout in a run.
Nanoseconds total_transformation_ns(const RunSummary& run);

/// Returns the largest measured peak memory of any rank in any phase; 0 if none was recorded.
Bytes peak_memory_bytes(const RunSummary& run);

}  // namespace frostpipe
