#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

/// Slices that each micro-batch of the phase is cut into; 1 where it is not.
int num_slices(const Phase& phase);

/// Tokens of the longest sample that the phase is planned for; at least 1.
std::int64_t longest_sample(const Phase& phase);

/// Tokens [begin, end) of every sample.
struct TokenRange {
  std::int64_t begin = 0, end = 0;
  /// Those that a sample of `length` tokens has.
  TokenRange of(std::int64_t length) const;
  std::int64_t count() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

/// What slice number `slice` has; the last one has all that is left, of whatever length.
TokenRange tokens_of_slice(const Phase& phase, int slice);

/// Tokens of each slice of a sample of `length` tokens: {length} where nothing is cut.
std::vector<std::int64_t> tokens_of_slices(const Phase& phase, std::int64_t length);

/// `lengths` tokens in `slices` slices, as equal as can be; the first ones are the longer ones.
std::vector<int> equal_slices(int length, int slices);

/// What these tokens of every sample cost in a micro-batch of `whole`, whose samples have whole.tokens each: as
/// measured after as many tokens, or, where slices were not measured, their share of the whole. Throws as cost_of.
LayerCost cost_of_slice(const Profile& profile, const MeasurementKey& whole, const TokenRange& tokens);

/// Of slice number `slice`; of the whole micro-batch where nothing is cut.
LayerCost cost_of_slice(const Profile& profile, const Phase& phase, const MeasurementKey& whole, int slice);

/// expected_frozen_forward_ns of a token slice that costs `slice`: its share of that of the micro-batch of `whole`.
Nanoseconds expected_frozen_forward_ns(const Profile& profile, const MeasurementKey& whole, const LayerCost& slice,
                                       double samples);

/// Throws InvalidInput ("PLACE.token_slices: ...") unless the phase's slices, if there are any, are those of a schedule
/// that has them and of a causal model, and hold the longest sample.
void require_token_slices(const Phase& phase, const Model& model, const std::string& place);

}  // namespace frostpipe
