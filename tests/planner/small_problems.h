#pragma once
#include <random>
#include <utility>
#include <vector>

#include "planner/search/plan_options.h"
#include "tests/support/synthetic_profile.h"

// Planning problems that are small enough for brute force.

namespace frostpipe::test {

/// Returns a profile of a chain of blocks whose layers take random times.
inline Profile random_profile(std::mt19937& random, int blocks) {
  std::vector<SyntheticLayer> layers(2 * blocks + 2);
  const auto draw = [&] { return Nanoseconds{1000 + static_cast<int>(random() % 9000)}; };
  for (auto& layer : layers)
    layer = {.forward_ns = draw(),
             .input_gradient_ns = draw(),
             .weight_gradient_ns = draw(),
             .update_ns = draw(),
             .output_activation_bytes = 100,
             .parameter_count = 1000,
             .split_backward = SplitBackward{draw(), draw(), 100}};
  return synthetic_profile(blocks, layers);
}

/// Returns the options of plans with one stage per rank.
inline PlanOptions options_for(int batch) {
  PlanOptions options;
  options.method = PlanMethod::automatic;
  options.global_batch_size = batch;
  options.num_steps = 10;
  options.tokens = kSyntheticTokens;
  options.virtual_stages = 1;
  return options;
}

/// Returns all ways to cut the layers into stages.
inline std::vector<Partition> all_partitions(int layers, int stages) {
  if (stages == 1) return {{{0, layers}}};
  std::vector<Partition> all;
  for (int cut = stages - 1; cut < layers; ++cut)
    for (Partition partition : all_partitions(cut, stages - 1)) {
      partition.push_back({cut, layers});
      all.push_back(std::move(partition));
    }
  return all;
}

}  // namespace frostpipe::test
