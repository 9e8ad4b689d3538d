#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace frostpipe {

/// When the freeze rule is asked, and how far it may go at once.
struct FreezeOptions {
  double warm_up_fraction = 0.34;  // of the run's steps: before it nothing is frozen
  double interval_fraction = 0.125;
  double alpha = 0.5;      // 0 < alpha < 1: fraction of the remaining active layers that one decision may freeze
  double threshold = 0.5;  // adaptive rule: share of its largest gradient norm under which a block counts as converged
  bool operator==(const FreezeOptions&) const = default;
};

/// From `from_step` on, the first `frozen_blocks` Transformer blocks, and the embedding with them, are frozen.
struct FreezeEvent {
  int from_step = 0;
  int frozen_blocks = 0;
  bool operator==(const FreezeEvent&) const = default;
};

/// Steps before which the rule is asked: ceil(warm_up * n), then every max(1, round(interval * n)) steps, all <
/// num_steps.
std::vector<int> decision_steps(int num_steps, const FreezeOptions& options);

/// The bound of the paper unrolled: ceil(L (1 - (1 - alpha)^decision)), decision = 1, 2, ... (He et al. 2021; the
/// published code's schedule). Exact at integers: 6 (1 - 0.5) is 3.
int cap_rule(int num_layers, double alpha, int decision);

/// min(ceil(previous + alpha (L - previous)), argmin over l in [previous, L) of gradient_norms[l]): everything below
/// the active layer with the smallest gradient norm is frozen, at most a fraction alpha of the active ones at once (He
/// et al. 2021, section 3.1). gradient_norms has one entry per block, entries of frozen blocks are ignored; ties go to
/// the lower layer. Monotone: never below `previous`.
int paper_rule(int previous, int num_layers, double alpha, std::span<const double> gradient_norms);

/// Reads "3,5,6": frozen blocks after the 1st, 2nd, ... decision, none below the one before; nothing if the text is
/// anything else.
std::optional<std::vector<int>> parse_fixed_layers(std::string_view text);

/// Those after each decision; more decisions than layers keep the last.
std::vector<FreezeEvent> forecast_fixed(std::span<const int> layers, int num_steps, const FreezeOptions& options);

/// What `cap_rule` will do over a run: the forecast that plans are made from. Only events that freeze more are listed.
std::vector<FreezeEvent> forecast_cap(int num_layers, int num_steps, const FreezeOptions& options);

}  // namespace frostpipe
