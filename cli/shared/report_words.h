#pragma once
#include <string>
#include <string_view>

#include "plan/comparison.h"

namespace frostpipe {

/// How a sentence calls a run: "one process on all cores", "data parallelism alone", "the best static pipeline", "the
/// elastic run", "the run NAME".
std::string run_in_words(std::string_view name);

/// ", the fastest of the others" after the name of the run that is; empty after any other.
std::string fastest_clause(const Comparison& comparison, std::string_view baseline);

/// One sentence: what the last run brought against each of the others, in speed and in accuracy, the latter with its
/// intervals.
std::string headline(const Comparison& comparison);

/// How large a difference in accuracy the test items can show; empty for a single run.
std::string accuracy_sentence(const Comparison& comparison);

/// "1 step", "1,234 steps".
std::string plural(long long count, std::string_view word);

/// "4 micro-batches", "whole mini-batch" of an operator plan.
std::string micro_batches_text(const PhaseSummary& phase);

/// "1 rank with 8 threads", "4 ranks with 2 threads each", "4 ranks".
std::string ranks_text(int ranks, int threads);

/// "+12.3 %" or "−12.3 %"; an empty text if either is 0 (nothing predicted, nothing measured).
std::string prediction_error_percent(Nanoseconds predicted, Nanoseconds measured);

/// "+1.2" with one decimal and a true minus sign.
std::string signed_number(double value);

/// "12,345" with separators.
std::string grouped(long long value);

/// All change into phases over a run.
Nanoseconds total_transformation_ns(const RunSummary& run);

/// Largest measured peak memory of any rank in any phase; 0 if none was recorded.
Bytes peak_memory_bytes(const RunSummary& run);

}  // namespace frostpipe
