#pragma once
#include "plan/plan.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe::test {

/// One block, four layers: per sample and layer 1 us forward, 2 us input gradient, 3 us weight gradient, 500 ns frozen.
/// A mini-batch of 8 takes 4 x 8 + 3 x 16 + 4 x 24 = 176 us (the first layer has no input gradient), and without the
/// block and the embedding 3 x 4 + 8 + 24 = 44 us.
inline Profile one_block_profile() {
  return synthetic_profile(1, {{.forward_ns = 1000,
                                .input_gradient_ns = 2000,
                                .weight_gradient_ns = 3000,
                                .frozen_forward_ns = 500,
                                .update_ns = 0,
                                .output_activation_bytes = 8,
                                .saved_activation_bytes = 16,
                                .workspace_bytes = 4,
                                .parameter_count = 100}});
}

constexpr Nanoseconds kWholeNs = 176'000, kFrozenNs = 44'000;

/// 100 steps of mini-batch 8 on one rank, in one micro-batch, without frozen layers.
inline TrainingPlan one_rank_plan() {
  Phase phase;
  phase.partition = {{0, 4}};
  phase.tokens = kSyntheticTokens;
  TrainingPlan plan;
  plan.method = PlanMethod::static_pipeline;
  plan.global_batch_size = 8;
  plan.num_steps = 100;
  plan.phases = {phase};
  return plan;
}

/// The same, with embedding and block frozen from step 40 on.
inline TrainingPlan one_rank_plan_that_freezes() {
  TrainingPlan plan = one_rank_plan();
  plan.phases.push_back(plan.phases.front());
  plan.phases.back().from_step = 40;
  plan.phases.back().first_trainable_layer = 3;
  return plan;
}

}  // namespace frostpipe::test
