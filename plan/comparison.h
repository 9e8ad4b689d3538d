#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// Difference of two runs' accuracies over the same test items, as a fraction (0.01 is one percentage point), with a
/// 95 % interval from the paired differences d_i in {-1, 0, 1}: mean +- 1.96 sqrt(var(d) / n).
struct PairedAccuracy {
  std::string run, baseline;
  double difference = 0;  // run - baseline
  double low = 0, high = 0;
  bool operator==(const PairedAccuracy&) const = default;
};

struct Speedup {
  std::string run, baseline;
  double factor = 0;  // ratio of samples_per_second
  /// 10th and 90th percentile of the ratio under resampling of both runs' recorded steps within each phase; equal to
  /// `factor` if a run recorded none. They cover the noise within these two runs only.
  double low = 0, high = 0;
  bool operator==(const Speedup&) const = default;
};

/// A prediction that no run measured, with the sentence that explains it.
struct WhatIf {
  std::string name;
  Nanoseconds iteration_ns = 0;
  Nanoseconds baseline_iteration_ns = 0;
  std::string sentence;
  bool operator==(const WhatIf&) const = default;
};

/// Several runs side by side; the last run is compared with each of the others.
struct Comparison {
  std::vector<RunSummary> runs;  // with predictions filled in
  std::vector<Speedup> speedups;
  std::vector<PairedAccuracy> accuracies;
  std::vector<WhatIf> what_ifs;
  bool operator==(const Comparison&) const = default;
};

/// Computes speedups and accuracies; resampling uses a fixed seed. Accuracies are compared only between runs that have
/// predictions for the same test_items with the same test_labels. A name that occurs twice becomes NAME_2, since names
/// are keys of the file.
Comparison compare(std::vector<RunSummary> runs);

/// Returns the name of the run with the most samples_per_second among those before the last; none if fewer than two
/// precede it.
std::optional<std::string> fastest_other(const Comparison& comparison);

/// Writes the envelope "frostpipe.summary", in which `runs` is an object keyed by run name; the inverse reads it.
std::string to_json(const Comparison& comparison);
Comparison comparison_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
