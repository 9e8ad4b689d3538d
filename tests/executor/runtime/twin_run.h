#pragma once
// Oracle: one process without stages (reference_model.h) that trains beside the ranks: losses within 1e-9, weights
// after SGD within 1e-10.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "executor/models/shards.h"
#include "tests/executor/agreed_loss.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/reference_model.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {

/// A checksum that changes when any weight of the layer does.
inline double checksum(const at::Tensor& flat) {
  return (flat.to(at::kCPU, at::kDouble) * at::arange(1, flat.numel() + 1, at::TensorOptions().dtype(at::kDouble)))
      .sum()
      .item<double>();
}

/// Checksums of all layers, each of the whole layer from replica 0's tensor ranks.
inline std::vector<double> checksums(Job& job, RankSession& session) {
  std::vector<double> sums(job.model.layers.size(), 0.0);
  const auto parts = session.parts_of_layers();
  for (const auto& [layer, state] : session.layers()) {
    const at::Tensor whole = collect({.whole = state.whole,
                                      .parts = parts[layer],
                                      .to_rank = parts[layer].front().rank,
                                      .tag = 0,
                                      .what = "checksum"},
                                     state.weights, state.weights.scalar_type(), job.communicator->control_group());
    if (whole.defined()) sums[layer] = checksum(whole);
  }
  return job.communicator->sum(sums);
}

struct TwinPhase {
  int p, d, m, first_trainable, steps;
  const char* schedule = "1F1B";
  int virtual_stages = 1;
  std::vector<int> token_slices{};
  Recompute recompute = std::nullopt;
  int t = 1;
  bool sequence_parallel = false;
};

/// Mini-batches that are trained by the ranks and by one process.
struct TwinRun {
  TwinRun(Job& with_job, Optimizer with_optimizer)
      : job(with_job),
        optimizer(with_optimizer),
        data(small_samples(job.config, kAllSamples)),
        session(job.session(*data, optimizer, kDtype)),
        reference(job.config, kSeed, layer_types_of(kDtype).kept) {
    for (int begin = 0; begin < kAllSamples; begin += 5) {
      std::vector<int>& order = orders.emplace_back();
      for (int i = 0; i < kSamples; ++i) order.push_back((begin + i) % kAllSamples);
    }
  }
  static constexpr int kSamples = 13, kAllSamples = 20;
  static constexpr DType kDtype = DType::kFloat64;
  Job& job;
  Optimizer optimizer;
  std::unique_ptr<Samples> data;
  std::vector<std::vector<int>> orders;  // other samples in each step
  RankSession session;
  ReferenceModel reference;
  int step = 0;

  void enter(const TwinPhase& segment) {
    Phase phase =
        small_phase(segment.p, segment.d, segment.m, segment.schedule, segment.first_trainable, segment.virtual_stages);
    phase.layout.tensor_parallel_size = segment.t;
    phase.layout.sequence_parallel = segment.sequence_parallel;
    phase.token_slices = segment.token_slices;
    phase.from_step = step;
    phase.recompute = segment.recompute;
    if (step == 0) {
      session.start(phase, step, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
        randomise_layer(job.config, layer, kSeed, state);
      });
    } else {
      const std::vector<double> before = checksums(job, session);
      session.enter(phase);
      CHECK_RANK(before == checksums(job, session), "a reconfiguration changes no weight");  // head included; exact
    }
    if (segment.first_trainable > 0) reference.cut_tie();
    weight_delay(phase) > 0 ? reference.delay_updates() : reference.delay_no_updates();
  }

  MiniBatch batch_of(int of_step) const { return mini_batch(*data, orders[of_step % orders.size()], kSamples, 0); }

  /// `drains`: whether the pipeline drains, since a reconfiguration follows.
  void train_one_step(int first_trainable, bool drains) {
    const UpdateRule rule{.optimizer = optimizer, .learning_rate = 0.01, .weight_decay = 0.1, .step = step + 1};
    Trace trace;
    IterationResult result;
    const MiniBatch batch = batch_of(step), next = batch_of(step + 1);
    if (session.runner())
      result = session.runner()->run_iteration(batch, &next, step, {.rule = rule, .gradient_clip = 1}, trace, drains);
    const double loss = agreed_loss(*job.communicator, result);
    const double expected = reference.loss_and_gradients(job.whole(*data, batch, kDtype), first_trainable);
    CHECK_RANK(std::abs(loss - expected) <= 1e-9 * (1 + std::abs(expected)),
               fmt::format("step {}: loss {} instead of {}", step, loss, expected));
    reference.step(optimizer, 0.01, 0.1, 1.0, first_trainable);
    // AdamW divides by the root of tiny second moments (the key bias has gradient 0): compared by loss, SGD by weights.
    for (const auto& [layer, state] : session.layers()) {
      const at::Tensor w0 = taken(state.whole, reference.weights(layer), {}, {.slice = state.slice});
      CHECK_RANK(optimizer != Optimizer::kSgd || l2(state.weights.to(at::kCPU) - w0) <= 1e-10 * l2(w0),
                 fmt::format("step {}: weights of layer {}", step, layer));
    }
    ++step;
  }

  /// A sum over d equal values is exactly d times one of them, for d = 1, 2, 4.
  void check_that_replicas_hold_the_same_bits(int d) {
    std::vector<double> sums(job.model.layers.size(), 0.0), own = sums;
    for (const auto& [layer, state] : session.layers()) own[layer] = sums[layer] = state.weights.sum().item<double>();
    sums = job.communicator->sum(sums);
    for (const auto& [layer, state] : session.layers())
      CHECK_RANK(d == 3 || sums[layer] == d * own[layer], fmt::format("replicas differ in layer {}", layer));
  }

  /// Moments of frozen layers are offloaded on a rank that trained them, and none are lost.
  void check_offloaded_moments(int first_trainable) {
    std::vector<double> offloaded(job.model.layers.size(), 0.0);
    for (const auto& [layer, moments] : session.offloaded())
      offloaded[layer] = moments.moments.first.norm().item<double>();
    offloaded = job.communicator->sum(offloaded);
    for (int layer = 0; layer < first_trainable; ++layer)
      CHECK_RANK(offloaded[layer] > 0, fmt::format("moments of layer {}", layer));
  }
};

/// Trains through the segments with the ranks and with one process; both must stay equal. It has 4 -> 2 -> 1 stages,
/// frozen layers on middle stages, batches that cannot be divided evenly, and one rank of 4 that is idle at first, with
/// p x d = 3.
inline void elastic_run_equals_single_process(Job& job, Optimizer optimizer, const std::vector<TwinPhase>& segments) {
  TwinRun run(job, optimizer);
  for (const TwinPhase& segment : segments) {
    run.enter(segment);
    for (int i = 0; i < segment.steps; ++i) run.train_one_step(segment.first_trainable, i + 1 == segment.steps);
    if (segment.t == 1) run.check_that_replicas_hold_the_same_bits(segment.d);
  }
  if (optimizer_moments(optimizer) > 0) run.check_offloaded_moments(segments.back().first_trainable);
}

}  // namespace frostpipe::test
