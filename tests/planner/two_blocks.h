#pragma once
#include <string>
#include <variant>

#include "planner/make_plan.h"
#include "planner/search/plan_options.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe::test {

/// Two blocks, six layers of 100 parameters: 1600 bytes each in training with AdamW, 400 when frozen; nothing else
/// needs memory. The whole model trains in 9600 bytes, half of it in 4800.
inline Profile two_blocks() {
  SyntheticLayer layer;
  layer.parameter_count = 100;
  layer.frozen_forward_ns = 1;
  layer.output_activation_bytes = 0;
  return synthetic_profile(2, {layer});
}

inline PlanOptions options_for(PlanMethod method) {
  PlanOptions options;
  options.method = method;
  options.global_batch_size = 8;
  options.num_steps = 100;
  options.tokens = kSyntheticTokens;
  options.virtual_stages = 1;  // as in the hand-made and brute-forced answers
  return options;
}

/// Returns why there is no plan, or "feasible" if there is one.
inline std::string reason_of(const PlanResult& result) {
  const auto* none = std::get_if<Infeasible>(&result);
  return none ? none->reason : "feasible";
}

}  // namespace frostpipe::test
