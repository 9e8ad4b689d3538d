#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe::test {

/// One layer's figures for one sample; all grow linearly with the micro-batch. Each figure has its own decimal place,
/// so that a sum shows its terms.
struct SyntheticLayer {
  Nanoseconds forward_ns = 1;
  Nanoseconds input_gradient_ns = 10;
  Nanoseconds weight_gradient_ns = 100;
  Nanoseconds frozen_forward_ns = 1000;
  Nanoseconds update_ns = 0;  // per optimizer step
  Bytes output_activation_bytes = 8;
  Bytes saved_activation_bytes = 0;
  Bytes workspace_bytes = 0;
  std::int64_t parameter_count = 1;
  std::optional<SplitBackward> split_backward = std::nullopt;
};

constexpr int kSyntheticTokens = 8;

/// Embedding, (attention, MLP) per block, head; every layer has one parameter.
inline Model synthetic_model(int blocks) {
  Model model{.name = "synthetic", .hidden_size = 4, .layers = {}, .edges = {}};
  const auto add = [&](std::string name, LayerKind kind, std::optional<int> block) {
    const int index = static_cast<int>(model.layers.size());
    if (index > 0) model.edges.push_back({index - 1, index});
    model.layers.push_back({.name = std::move(name), .kind = kind, .block = block, .parameter_count = 1});
  };
  add("embedding", LayerKind::embedding, std::nullopt);
  for (int block = 0; block < blocks; ++block) {
    add("block." + std::to_string(block) + ".attention", LayerKind::attention, block);
    add("block." + std::to_string(block) + ".mlp", LayerKind::mlp, block);
  }
  add("head", LayerKind::head, std::nullopt);
  return model;
}

/// Measured at micro-batches of 1, 2, 4, .. 64 samples of kSyntheticTokens on device type "cpu". `layers` has one entry
/// per layer, or one for all.
inline Profile synthetic_profile(int blocks, const std::vector<SyntheticLayer>& layers) {
  Profile profile;
  profile.model = synthetic_model(blocks);
  const int num_layers = static_cast<int>(profile.model.layers.size());
  for (int layer = 0; layer < num_layers; ++layer) {
    const SyntheticLayer& one = layers.size() == 1 ? layers.front() : layers.at(layer);
    profile.model.layers[layer].parameter_count = one.parameter_count;
    for (int size = 1; size <= 64; size *= 2) {
      std::optional<SplitBackward> split = one.split_backward;
      if (split) split = {size * split->input_ns, size * split->weight_ns, size * split->kept_bytes};
      profile.measurements.push_back({.key = {.layer = layer, .micro_batch_size = size, .tokens = kSyntheticTokens},
                                      .cost = {.forward_ns = size * one.forward_ns,
                                               .input_gradient_ns = size * one.input_gradient_ns,
                                               .weight_gradient_ns = size * one.weight_gradient_ns,
                                               .frozen_forward_ns = size * one.frozen_forward_ns,
                                               .output_activation_bytes = size * one.output_activation_bytes,
                                               .saved_activation_bytes = size * one.saved_activation_bytes,
                                               .workspace_bytes = size * one.workspace_bytes,
                                               .split_backward = split}});
    }
    for (const Optimizer optimizer : {Optimizer::kAdamW, Optimizer::kSgd}) {
      profile.updates.push_back({.layer = layer, .optimizer = optimizer, .update_ns = one.update_ns});
    }
  }
  return profile;
}

/// The factor on a layer's figures for a slice of l tokens after c others: a0 + a1 l + a2 c + a3 l c.
struct SliceTimes {
  int a0 = 0, a1 = 1, a2 = 0, a3 = 0;
  int at(int length, int context) const { return a0 + a1 * length + a2 * context + a3 * length * context; }
};

/// The same model, causal, and measured at slices of a quarter, a half and all of `tokens` after none and half of them,
/// as far as they fit; `whole` has the figures that `times` multiplies. Bytes are proportional to tokens.
inline Profile with_slices(const Profile& whole, const SliceTimes& times, int tokens = kSyntheticTokens) {
  Profile profile = whole;
  profile.model.is_causal = true;
  profile.measurements.clear();
  for (const Measurement& one : whole.measurements) {
    for (const int context : {0, tokens / 2}) {
      for (const int length : {tokens / 4, tokens / 2, tokens}) {
        if (context + length > tokens) continue;
        Measurement slice = one;
        slice.key.tokens = length;
        slice.key.context_tokens = context;
        slice.cost.split_backward.reset();
        for (Nanoseconds* const time : times_in(slice.cost)) *time *= times.at(length, context);
        for (Bytes* const bytes :
             {&slice.cost.output_activation_bytes, &slice.cost.saved_activation_bytes, &slice.cost.workspace_bytes})
          *bytes *= length;
        profile.measurements.push_back(slice);
      }
    }
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  return profile;
}

/// Ranks of one node whose messages and collectives take no time.
inline Cluster free_cluster(int ranks, std::optional<Bytes> memory_limit_bytes = std::nullopt) {
  Cluster cluster;
  cluster.name = "free";
  cluster.devices.assign(ranks, Device{.type = "cpu", .node = 0, .memory_limit_bytes = memory_limit_bytes});
  return cluster;
}

}  // namespace frostpipe::test
