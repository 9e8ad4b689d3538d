#include "executor/freeze_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "profiles/error.h"

namespace frostpipe {

FreezePolicy parse_freeze_policy(const std::string& text, const FreezeOptions& options) {
  FreezePolicy policy{.rule = FreezePolicy::Rule::plan, .options = options, .fixed_layers = {}};
  const std::string place = "--freeze", rules = "must be plan, paper, cap or fixed:N,N,... (frozen layers after each decision, ascending)";
  if (text == "plan") return policy;
  if (text == "paper" || text == "cap") {
    policy.rule = text == "paper" ? FreezePolicy::Rule::paper : FreezePolicy::Rule::cap;
    return policy;
  }
  if (!text.starts_with("fixed:")) throw InvalidInput(place, rules, text);
  policy.rule = FreezePolicy::Rule::fixed;
  const char* at = text.data() + 6;
  const char* const end = text.data() + text.size();
  for (;;) {
    int layers = 0;
    const auto [stop, error] = std::from_chars(at, end, layers);
    const int before = policy.fixed_layers.empty() ? 0 : policy.fixed_layers.back();
    if (error != std::errc() || layers < before || (stop != end && *stop != ',')) throw InvalidInput(place, rules, text);
    policy.fixed_layers.push_back(layers);
    if (stop == end) return policy;
    at = stop + 1;
  }
}

FreezeController::FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps)
    : policy_(policy), num_blocks_(num_blocks), norm_sums_(num_blocks, 0.0) {
  if (policy.rule != FreezePolicy::Rule::plan) decision_steps_ = decision_steps(num_steps, policy.options);
  for (const int layers : policy.fixed_layers) {
    if (layers > num_blocks) throw InvalidInput("--freeze", fmt::format("must freeze at most the model's {} layers", num_blocks), std::to_string(layers));
  }
}

void FreezeController::record(const std::vector<double>& block_square_sums, bool speaks) {
  if (!speaks || block_square_sums.empty()) return;
  for (int block = 0; block < num_blocks_; ++block) norm_sums_[block] += std::sqrt(block_square_sums[block]);
  ++num_recorded_;
}

bool FreezeController::decides_before(int step) const {
  return std::binary_search(decision_steps_.begin(), decision_steps_.end(), step);
}

int FreezeController::decide(int frozen, Communicator& communicator) {
  ++decisions_;
  std::vector<double> figures = norm_sums_;
  figures.push_back(num_recorded_);
  figures = communicator.sum(std::move(figures));  // only one rank has recorded
  const double recorded = std::max(1.0, figures.back());
  figures.pop_back();
  for (double& figure : figures) figure /= recorded;
  std::fill(norm_sums_.begin(), norm_sums_.end(), 0.0);
  num_recorded_ = 0;
  int decided = frozen;
  switch (policy_.rule) {
    case FreezePolicy::Rule::plan: FROSTPIPE_CHECK(false, "a plan's phases are not decided");
    case FreezePolicy::Rule::paper: decided = paper_rule(frozen, num_blocks_, policy_.options.alpha, figures); break;
    case FreezePolicy::Rule::cap: decided = cap_rule(num_blocks_, policy_.options.alpha, decisions_); break;
    case FreezePolicy::Rule::fixed: {
      const std::size_t index = std::min<std::size_t>(decisions_, policy_.fixed_layers.size()) - 1;
      decided = policy_.fixed_layers[index];
      break;
    }
  }
  return std::stoi(communicator.broadcast(std::to_string(std::max(frozen, decided)), 0));
}

}  // namespace frostpipe
