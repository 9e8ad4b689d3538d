#pragma once
// Small models, profiles and plans that the tests of profiles/ and plan/ share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "profiles/profile.h"

namespace frostpipe::examples {

/// Embedding, (attention, mlp) x blocks, head, with 1000 parameters, 400 and 800 per block, and 30.
inline Model chain_model(int num_blocks) {
  Model model{.name = "example", .hidden_size = 8, .layers = {}, .edges = {}};
  const auto add = [&](std::string name, LayerKind kind, std::optional<int> block, std::int64_t parameters) {
    model.layers.push_back({.name = std::move(name), .kind = kind, .block = block, .parameter_count = parameters});
  };
  add("embedding", LayerKind::embedding, std::nullopt, 1000);
  for (int block = 0; block < num_blocks; ++block) {
    add("block." + std::to_string(block) + ".attention", LayerKind::attention, block, 400);
    add("block." + std::to_string(block) + ".mlp", LayerKind::mlp, block, 800);
  }
  add("head", LayerKind::head, std::nullopt, 30);
  for (int i = 0; i + 1 < static_cast<int>(model.layers.size()); ++i) model.edges.push_back({i, i + 1});
  return model;
}

inline MeasurementKey key_of(int layer, int micro_batch_size, int tokens) {
  MeasurementKey key;
  key.layer = layer;
  key.micro_batch_size = micro_batch_size;
  key.tokens = tokens;
  return key;
}

/// Every layer is measured at one point: 100 output bytes, 1000 saved, 10 of workspace.
inline Profile flat_profile(const Model& model, int micro_batch_size, int tokens) {
  Profile profile;
  profile.model = model;
  profile.machine = "a test";
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    profile.measurements.push_back({.key = key_of(layer, micro_batch_size, tokens),
                                    .cost = {.forward_ns = 1000,
                                             .input_gradient_ns = 1000,
                                             .weight_gradient_ns = 1000,
                                             .frozen_forward_ns = 900,
                                             .output_activation_bytes = 100,
                                             .saved_activation_bytes = 1000,
                                             .workspace_bytes = 10}});
    UpdateMeasurement update;
    update.layer = layer;
    update.update_ns = 50;
    profile.updates.push_back(update);
  }
  return profile;
}

inline Cluster cluster_of(int num_ranks, std::optional<Bytes> memory_limit_bytes = std::nullopt) {
  Cluster cluster;
  cluster.name = "example";
  cluster.devices.resize(num_ranks);
  for (auto& device : cluster.devices) device.memory_limit_bytes = memory_limit_bytes;
  return cluster;
}

/// A workload with every field set.
inline Workload example_workload() {
  return {.name = "example.tsv",
          .num_samples = 1600,
          .tokens = 31.75,
          .tokens_deviation = 6.5,
          .longest_tokens = 48,
          .global_batch_size = 64,
          .max_tokens = 48,
          .window_overlap = 8};
}

/// Two phases over 4 ranks and a model of 4 blocks (10 layers): 4 x 1, then 2 blocks frozen and 2 x 2.
inline TrainingPlan two_phase_plan() {
  Phase first;
  first.layout.pipeline_parallel_size = 4;
  first.partition = {{0, 3}, {3, 5}, {5, 7}, {7, 10}};
  first.num_micro_batches = 8;
  first.tokens = 32;
  first.longest_tokens = 48;
  first.largest_micro_batch_tokens = 335;  // for 8 samples; tests/plan/memory_test.cpp derives it
  first.predicted = {.iteration_ns = 123456789012345, .transformation_ns = 0, .peak_memory_bytes = {1, 2, 3, 4}};
  Phase second = first;
  second.from_step = 40;
  second.first_trainable_layer = 5;
  second.layout.pipeline_parallel_size = 2;
  second.layout.data_parallel_size = 2;
  second.layout.placement = {0, 2, 1, 3};
  second.partition = {{0, 6}, {6, 10}};
  second.num_micro_batches = 4;
  second.schedule = "GPipe";
  second.predicted = {};
  TrainingPlan plan;
  plan.method = PlanMethod::pipetransformer;
  plan.world_size = 4;
  plan.global_batch_size = 64;
  plan.num_steps = 100;
  plan.epochs = 4;
  plan.workload = example_workload();
  plan.phases = {first, second};
  plan.provenance.model_name = "example";
  plan.provenance.model_fingerprint = fingerprint(chain_model(4));
  plan.provenance.version = "0.1.0";
  return plan;
}

/// Returns the message of the Error that `run` throws. The test fails if it throws none.
template <class Error = InvalidInput, class Run>
std::string message_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// Returns `text` with the first `from` replaced. The test fails if it does not occur.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "\"" << from << "\" does not occur in " << text;
    return text;
  }
  return text.replace(at, from.size(), to);
}

/// Stages 0 1 2 3 on pipeline ranks 0 1 1 0 with one micro-batch; stages 1 to 3 split the backward.
inline Schedule zig_zag() {
  Schedule schedule{.name = "zig-zag",
                    .num_micro_batches = 1,
                    .first_trainable_stage = 0,
                    .pipeline_rank_of_stage = {0, 1, 1, 0},
                    .prologue = {},
                    .body = {{}, {}},
                    .epilogue = {}};
  for (const char* text : {"0F0", "3F0", "3I0", "3W0", "0B0"}) schedule.body[0].push_back(parse_action(text, ""));
  for (const char* text : {"1F0", "2F0", "2I0", "1I0", "2W0", "1W0"})
    schedule.body[1].push_back(parse_action(text, ""));
  return schedule;
}

/// Two blocks on two stages, [0,3) [3,6): layers of 1000 400 800 | 400 800 30 parameters; 2 micro-batches of 4 samples.
inline Phase two_stages() {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 3}, {3, 6}};
  phase.num_micro_batches = 2;
  phase.tokens = 16;
  return phase;
}

}  // namespace frostpipe::examples
