#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Options that say before which steps the freeze rule is asked, and how much one decision may freeze.
struct FreezeOptions {
  double warm_up_fraction = 0.34;    // fraction of the run's steps before the first decision
  double interval_fraction = 0.125;  // fraction of the run's steps between decisions
  double alpha = 0.5;      // 0 < alpha < 1: fraction of the remaining active blocks that one decision may freeze
  double threshold = 0.5;  // adaptive rule: a block has converged below this share of its largest gradient norm
  bool operator==(const FreezeOptions&) const = default;
};

/// From step `from_step`, the embedding and the first `frozen_blocks` Transformer blocks are frozen.
struct FreezeEvent {
  int from_step = 0;
  int frozen_blocks = 0;
  bool operator==(const FreezeEvent&) const = default;
};

/// Returns the steps before which the rule is asked: ceil(warm_up * n), then every max(1, round(interval * n)) steps,
/// all below n = num_steps. Throws InvalidInput unless 0 <= warm_up <= 1 and 0 < interval <= 1.
std::vector<int> decision_steps(int num_steps, const FreezeOptions& options);

/// Returns the cap after `num_decisions` decisions, 0 before the first: ceil(L (1 - (1 - alpha)^num_decisions)) of L
/// blocks. This is the bound of He et al. 2021, unrolled as in the published code. Rounding errors do not raise it: for
/// 6 (1 - 0.5) it is 3. Throws InvalidInput unless 0 < alpha < 1.
int cap_rule(int num_blocks, double alpha, int num_decisions);

/// Returns min(ceil(previous + alpha (L - previous)), argmin over l in [previous, L) of gradient_norms[l]) for L
/// blocks. This freezes all blocks below the active one with the smallest gradient norm, but at most a fraction alpha
/// of the active ones at once (He et al. 2021, section 3.1). gradient_norms has one entry per block; those of frozen
/// blocks are ignored, and a NaN is never the smallest. Ties go to the lower block. The result is never below
/// `previous`. Throws as cap_rule does.
int paper_rule(int previous, int num_blocks, double alpha, std::span<const double> gradient_norms);

/// Parses "3,5,6": the number of frozen blocks after the 1st, 2nd, ... decision, never decreasing. Returns none for any
/// other text.
std::optional<std::vector<int>> parse_fixed_layers(std::string_view text);

/// Returns the freeze events over a run of a list as parse_fixed_layers returns it. If there are more decisions than
/// entries, the last entry stays. Throws as decision_steps does.
std::vector<FreezeEvent> forecast_fixed(std::span<const int> layers, int num_steps, const FreezeOptions& options);

/// Returns the freeze events of `cap_rule` over a run, from which plans are made. Each freezes more blocks than the one
/// before. Throws as decision_steps and cap_rule do.
std::vector<FreezeEvent> forecast_cap(int num_blocks, int num_steps, const FreezeOptions& options);

}  // namespace frostpipe
