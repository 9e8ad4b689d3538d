#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// Returns the number of token slices per micro-batch of the phase; 1 if it is not cut.
int num_slices(const Phase& phase);

/// Returns the tokens of the longest sample that the phase is planned for; at least 1.
std::int64_t longest_sample(const Phase& phase);

/// The tokens [begin, end) of every sample.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  /// Returns the part of the range that a sample of `length` tokens has.
  TokenRange of(std::int64_t length) const;
  std::int64_t count() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

/// Returns the range of slice number `slice`. The last slice extends to the end of any sample.
TokenRange tokens_of_slice(const Phase& phase, int slice);

/// Returns the tokens of each slice of a sample of `length` tokens; {length} if the phase is not cut.
std::vector<std::int64_t> tokens_of_slices(const Phase& phase, std::int64_t length);

/// Splits `length` tokens into `slices` parts as evenly as possible, longer ones first.
std::vector<int> equal_slices(int length, int slices);

/// Returns the cost of these tokens of every sample in a micro-batch of `whole`, whose samples have whole.tokens each:
/// as measured after the same number of context tokens or, if slices were not measured, their share of the whole. No
/// tokens cost nothing. Throws what cost_of throws.
LayerCost cost_of_slice(const Profile& profile, const MeasurementKey& whole, const TokenRange& tokens);

/// Returns the cost of slice number `slice`, or of the whole micro-batch if the phase is not cut.
LayerCost cost_of_slice(const Profile& profile, const Phase& phase, const MeasurementKey& whole, int slice);

/// Returns the expected time of the frozen forward of a token slice that costs `slice`: its share of the time that
/// `samples` samples of the micro-batch of `whole` are expected to take.
Nanoseconds expected_frozen_forward_ns(const Profile& profile, const MeasurementKey& whole, const LayerCost& slice,
                                       double samples);

/// Throws InvalidInput ("PLACE.token_slices: ...") unless the phase has no slices, or the schedule and the model (a
/// causal one) allow them and they cover the longest sample.
void require_token_slices(const Phase& phase, const Model& model, const std::string& place);

}  // namespace frostpipe
