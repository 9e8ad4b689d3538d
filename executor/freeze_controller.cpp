#include "executor/freeze_controller.h"

#include <algorithm>

#include <cmath>

#include "profiles/error.h"

namespace frostpipe {

FreezePolicy parse_freeze_policy(const std::string& text, const FreezeOptions& options) {
  FreezePolicy policy{.rule = FreezePolicy::Rule::plan, .options = options, .fixed_layers = {}};
  const std::string place = "--freeze", rules = "must be plan, paper, cap, adaptive or fixed:N,N,... (frozen layers after each decision, ascending)";
  if (text == "plan") return policy;
  for (const auto& [name, rule] : {std::pair("paper", FreezePolicy::Rule::paper), std::pair("cap", FreezePolicy::Rule::cap),
                                   std::pair("adaptive", FreezePolicy::Rule::adaptive)}) {
    if (text != name) continue;
    policy.rule = rule;
    return policy;
  }
  if (!text.starts_with("fixed:")) throw InvalidInput(place, rules, text);
  policy.rule = FreezePolicy::Rule::fixed;
  const auto layers = parse_fixed_layers(std::string_view(text).substr(6));
  if (!layers) throw InvalidInput(place, rules, text);
  policy.fixed_layers = *layers;
  return policy;
}

FreezeController::FreezeController(const FreezePolicy& policy, int num_blocks, int num_steps)
    : rule_(make_freeze_rule(policy, num_blocks, num_steps)), norm_sums_(num_blocks, 0.0) {}

void FreezeController::record(const std::vector<double>& block_square_sums, bool speaks) {
  if (!speaks || block_square_sums.empty()) return;
  for (std::size_t block = 0; block < norm_sums_.size(); ++block) norm_sums_[block] += std::sqrt(block_square_sums[block]);
  ++num_recorded_;
}

int FreezeController::decide(int step, int frozen, Communicator& communicator) {
  std::vector<double> norms = norm_sums_;
  norms.push_back(num_recorded_);
  norms = communicator.sum(std::move(norms));  // only one rank has recorded; every rank gets the same bits
  const double recorded = std::max(1.0, norms.back());
  norms.pop_back();
  for (double& norm : norms) norm /= recorded;
  std::fill(norm_sums_.begin(), norm_sums_.end(), 0.0);
  num_recorded_ = 0;
  return std::max(frozen, rule_->decide(step, frozen, norms));
}

}  // namespace frostpipe
