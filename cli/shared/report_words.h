#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/comparison.h"

namespace frostpipe {

/// Returns "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& parts);

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

/// Returns "4 micro-batches", or "whole mini-batch" for an operator plan.
std::string micro_batches_text(const PhaseSummary& phase);

/// Returns "1 rank with 8 threads", "4 ranks with 2 threads each", "4 ranks".
std::string ranks_text(int ranks, int threads);

/// Returns "+12.3 %" or "−12.3 %"; an empty text if either is 0 (nothing predicted, nothing measured).
std::string prediction_error_percent(Nanoseconds predicted, Nanoseconds measured);

/// Returns "+1.2", with one decimal and a true minus sign.
std::string signed_number(double value);

/// Returns "12,345", with separators.
std::string grouped(long long value);

/// Returns the name of the runs' test accuracy, such as "F1", if all tested runs have the same; else "accuracy".
std::string test_metric_of(const std::vector<RunSummary>& runs);

/// Returns the names of the further figures of the runs' tests, such as "loss", each once.
std::vector<std::string> other_measures(const std::vector<RunSummary>& runs);

/// Returns "exact match [%]", or "perplexity" for a figure that is not a fraction.
std::string measure_heading(const std::string& name);

/// Returns the number that stands below measure_heading(): "71.2" percent, "0.523".
std::string measure_number(const NamedValue& measure);
/// Returns the same of the run's further figure of that name; empty if it has none.
std::string other_measure(const RunSummary& run, const std::string& name);

/// Returns the time of all changes of the layout in a run.
Nanoseconds total_transformation_ns(const RunSummary& run);

/// Returns the largest measured peak memory of any rank in any phase; 0 if none was recorded.
Bytes peak_memory_bytes(const RunSummary& run);

}  // namespace frostpipe
