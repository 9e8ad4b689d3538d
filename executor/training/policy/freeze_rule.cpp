#include "executor/training/policy/freeze_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

class NeverAsked final : public FreezeRule {
 public:
  bool asks_before(int, int) const override { return false; }
  int decide(int, int frozen, std::span<const double>) override { return frozen; }
};

/// Decides at steps that are known in advance.
class AtDecisionSteps : public FreezeRule {
 public:
  AtDecisionSteps(const FreezePolicy& policy, int num_blocks, int num_steps)
      : policy_(policy), num_blocks_(num_blocks), steps_(decision_steps(num_steps, policy.options)) {}
  bool asks_before(int step, int) const override { return std::binary_search(steps_.begin(), steps_.end(), step); }

 protected:
  const FreezePolicy policy_;
  const int num_blocks_;

 private:
  std::vector<int> steps_;
};

class PaperRule final : public AtDecisionSteps {
 public:
  using AtDecisionSteps::AtDecisionSteps;
  int decide(int, int frozen, std::span<const double> norms) override {
    return paper_rule(frozen, num_blocks_, policy_.options.alpha, norms);
  }
};

class CapRule final : public AtDecisionSteps {
 public:
  using AtDecisionSteps::AtDecisionSteps;
  int decide(int, int, std::span<const double>) override {
    return cap_rule(num_blocks_, policy_.options.alpha, ++decisions_);
  }
  std::vector<double> state() const override { return {static_cast<double>(decisions_)}; }
  bool restore(std::span<const double> state) override {
    if (state.size() != 1) return false;
    decisions_ = static_cast<int>(state[0]);
    return true;
  }

 private:
  int decisions_ = 0;
};

class FixedRule final : public AtDecisionSteps {
 public:
  FixedRule(const FreezePolicy& policy, int num_blocks, int num_steps)
      : AtDecisionSteps(policy, num_blocks, num_steps) {
    for (const int blocks : policy.fixed_layers) {
      if (blocks > num_blocks)
        throw InvalidInput("--freeze", fmt::format("must freeze at most the model's {} blocks", num_blocks),
                           std::to_string(blocks));
    }
  }
  int decide(int, int, std::span<const double>) override {
    return policy_.fixed_layers[std::min(decisions_++, policy_.fixed_layers.size() - 1)];
  }
  std::vector<double> state() const override { return {static_cast<double>(decisions_)}; }
  bool restore(std::span<const double> state) override {
    if (state.size() != 1 || state[0] < 0) return false;
    decisions_ = static_cast<std::size_t>(state[0]);
    return true;
  }

 private:
  std::size_t decisions_ = 0;
};

class AdaptiveRule final : public FreezeRule {
 public:
  AdaptiveRule(const FreezeOptions& options, int num_blocks, int num_steps)
      : options_(options),
        num_steps_(num_steps),
        horizon_(std::max(4.0, kHorizonFraction * num_steps)),
        smoothed_(num_blocks, 0.0),
        peak_(num_blocks, 0.0) {}

  bool asks_before(int step, int frozen) const override {
    return step > 0 && frozen < static_cast<int>(smoothed_.size());
  }

  int decide(int step, int frozen, std::span<const double> norms) override {
    const int num_blocks = static_cast<int>(smoothed_.size());
    ++observed_;
    const double weight = std::max(1.0 / observed_, 1.0 / horizon_);  // a plain mean until the horizon is reached
    for (int block = frozen; block < num_blocks; ++block) {
      smoothed_[block] += weight * (norms[block] - smoothed_[block]);
      if (observed_ >= horizon_) peak_[block] = std::max(peak_[block], smoothed_[block]);
    }
    const bool too_early =
        step < options_.warm_up_fraction * num_steps_ || observed_ < horizon_ || step < last_freeze_ + horizon_;
    if (too_early) return frozen;
    int decided = frozen;
    while (decided < num_blocks && smoothed_[decided] < options_.threshold * peak_[decided]) ++decided;
    const auto most = static_cast<int>(std::ceil(frozen + options_.alpha * (num_blocks - frozen) - 1e-9));
    decided = std::min(decided, most);
    if (decided > frozen) last_freeze_ = step;
    return decided;
  }

  std::vector<double> state() const override {
    std::vector<double> all{static_cast<double>(observed_), last_freeze_};
    all.insert(all.end(), smoothed_.begin(), smoothed_.end());
    all.insert(all.end(), peak_.begin(), peak_.end());
    return all;
  }
  bool restore(std::span<const double> state) override {
    if (state.size() != 2 + 2 * smoothed_.size()) return false;
    observed_ = static_cast<int>(state[0]);
    last_freeze_ = state[1];
    std::copy_n(state.begin() + 2, smoothed_.size(), smoothed_.begin());
    std::copy_n(state.begin() + 2 + static_cast<std::ptrdiff_t>(smoothed_.size()), peak_.size(), peak_.begin());
    return true;
  }

 private:
  static constexpr double kHorizonFraction = 0.04;
  FreezeOptions options_;
  int num_steps_;
  double horizon_;  // in steps
  std::vector<double> smoothed_, peak_;
  int observed_ = 0;
  double last_freeze_ = -1e18;
};

}  // namespace

std::unique_ptr<FreezeRule> make_freeze_rule(const FreezePolicy& policy, int num_blocks, int num_steps) {
  switch (policy.rule) {
    case FreezePolicy::Rule::plan:
      return std::make_unique<NeverAsked>();
    case FreezePolicy::Rule::paper:
      return std::make_unique<PaperRule>(policy, num_blocks, num_steps);
    case FreezePolicy::Rule::cap:
      return std::make_unique<CapRule>(policy, num_blocks, num_steps);
    case FreezePolicy::Rule::fixed:
      return std::make_unique<FixedRule>(policy, num_blocks, num_steps);
    case FreezePolicy::Rule::adaptive:
      return std::make_unique<AdaptiveRule>(policy.options, num_blocks, num_steps);
  }
  FROSTPIPE_CHECK(false, "all rules are listed");
}

}  // namespace frostpipe
