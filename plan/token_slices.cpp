#include "plan/token_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace frostpipe {

int num_slices(const Phase& phase) { return std::max(1, static_cast<int>(phase.token_slices.size())); }

std::int64_t longest_sample(const Phase& phase) { return std::max({1, phase.tokens, phase.longest_tokens}); }

TokenRange TokenRange::of(std::int64_t length) const { return {std::min(begin, length), std::min(end, length)}; }

TokenRange tokens_of_slice(const Phase& phase, int slice) {
  FROSTPIPE_CHECK(slice >= 0 && slice < num_slices(phase), "slices are those of the phase");
  const auto first = phase.token_slices.begin();
  const std::int64_t begin = std::accumulate(first, first + slice, std::int64_t{0});
  if (slice + 1 == num_slices(phase)) return {begin, std::numeric_limits<std::int64_t>::max()};
  return {begin, begin + phase.token_slices[slice]};
}

std::vector<std::int64_t> tokens_of_slices(const Phase& phase, std::int64_t length) {
  std::vector<std::int64_t> tokens;
  for (int slice = 0; slice < num_slices(phase); ++slice)
    tokens.push_back(tokens_of_slice(phase, slice).of(length).count());
  return tokens;
}

std::vector<int> equal_slices(int length, int slices) {
  FROSTPIPE_CHECK(slices >= 1 && slices <= length, "every slice has a token");
  std::vector<int> lengths(slices, length / slices);
  std::fill_n(lengths.begin(), length % slices, length / slices + 1);
  return lengths;
}

LayerCost cost_of_slice(const Profile& profile, const MeasurementKey& whole, const TokenRange& tokens) {
  const TokenRange here = tokens.of(whole.tokens);
  if (here.count() == 0) return {};
  MeasurementKey key = whole;
  key.tokens = static_cast<int>(here.count());
  key.context_tokens = static_cast<int>(here.begin);
  if (const std::optional<LayerCost> measured = cost_of_slice(profile, key)) return *measured;
  return share_of(cost_of(profile, whole), static_cast<double>(here.count()) / whole.tokens);
}

LayerCost cost_of_slice(const Profile& profile, const Phase& phase, const MeasurementKey& whole, int slice) {
  if (num_slices(phase) == 1) return cost_of(profile, whole);
  return cost_of_slice(profile, whole, tokens_of_slice(phase, slice));
}

Nanoseconds expected_frozen_forward_ns(const Profile& profile, const MeasurementKey& whole, const LayerCost& slice,
                                       double samples) {
  const Nanoseconds expected = expected_frozen_forward_ns(profile, whole, samples),
                    all = cost_of(profile, whole).frozen_forward_ns;
  if (all == 0 || slice.frozen_forward_ns == all) return expected;
  return static_cast<Nanoseconds>(static_cast<double>(slice.frozen_forward_ns) * static_cast<double>(expected) /
                                  static_cast<double>(all));
}

void require_token_slices(const Phase& phase, const Model& model, const std::string& place) {
  if (phase.token_slices.empty()) return;
  if (phase.schedule_rows.empty() && !schedule_traits(phase.schedule).has_slices)
    throw InvalidInput(place + ".token_slices", "must be empty unless the schedule is TeraPipe or Seq1F1B",
                       fmt::format("{} slice{} with {}", phase.token_slices.size(),
                                   phase.token_slices.size() == 1 ? "" : "s", phase.schedule));
  if (!model.is_causal)
    throw InvalidInput(
        place + ".token_slices",
        "must be empty: only causal language models, such as GPT-2 and Llama, have them; plan without slices",
        model.name);
  for (std::size_t i = 0; i < phase.token_slices.size(); ++i)
    if (phase.token_slices[i] < 1)
      throw InvalidInput(fmt::format("{}.token_slices[{}]", place, i), "must be >= 1",
                         std::to_string(phase.token_slices[i]));
  const std::int64_t sum = std::accumulate(phase.token_slices.begin(), phase.token_slices.end(), std::int64_t{0});
  const std::int64_t longest = longest_sample(phase);
  if (sum < longest)
    throw InvalidInput(place + ".token_slices",
                       fmt::format("must have at least {} tokens together, those of the longest sample", longest),
                       std::to_string(sum));
}

}  // namespace frostpipe
