// Oracle: one process without stages that trains beside the ranks (twin_run.h); moved layers stay bitwise equal.
#include "executor/runtime/reconfigure.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/runtime/twin_run.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

void elastic_run_equals_single_process(const RankEnvironment& self, Optimizer optimizer,
                                       const std::vector<TwinPhase>& segments) {
  Job job(self);
  elastic_run_equals_single_process(job, optimizer, segments);
}

const std::vector<TwinPhase> kFourTwoOne{
    {4, 1, 3, 0, 2}, {4, 1, 2, 3, 2}, {2, 2, 2, 3, 2}, {1, 4, 1, 5, 2}, {1, 4, 2, 7, 1}};
const std::vector<TwinPhase> kWithIdleRanks{{3, 1, 2, 0, 2}, {2, 1, 2, 1, 1}, {1, 3, 1, 3, 2}, {2, 2, 1, 5, 1}};

RANK_TEST(Reconfiguration, SgdRunOf4To2To1StagesEqualsOneProcess, 4) {
  elastic_run_equals_single_process(self, Optimizer::kSgd, kFourTwoOne);
}

RANK_TEST(Reconfiguration, AdamWRunOf4To2To1StagesEqualsOneProcess, 4) {
  elastic_run_equals_single_process(self, Optimizer::kAdamW, kFourTwoOne);
}

RANK_TEST(Reconfiguration, RunWithRanksThatAreIdleForAWhileEqualsOneProcess, 4) {
  elastic_run_equals_single_process(self, Optimizer::kSgd, kWithIdleRanks);
}

/// Changes between whole and split backwards, with freezing and another layout in between.
RANK_TEST(Reconfiguration, RunThroughSchedulesThatSplitTheBackwardEqualsOneProcess, 2) {
  Job job(self);
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW})
    elastic_run_equals_single_process(job, optimizer,
                                      {{2, 1, 3, 0, 2},
                                       {2, 1, 3, 0, 2, "ZB-H1"},
                                       {2, 1, 4, 3, 2, "ZB-H2"},
                                       {1, 2, 2, 3, 1, "ZB-H1"},
                                       {2, 1, 2, 5, 1}});
}

/// Layers move to ranks that hold several ranges of them, to those of a V, and back; rank 3 is idle for a while.
RANK_TEST(Reconfiguration, RunThroughSchedulesOfSeveralStagesPerRankEqualsOneProcess, 4) {
  Job job(self);
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW})
    elastic_run_equals_single_process(job, optimizer,
                                      {{2, 2, 3, 0, 2},
                                       {4, 1, 8, 0, 2, "ZBVZeroBubble", 2},
                                       {2, 2, 4, 1, 2, "Interleaved1F1B", 2},
                                       {3, 1, 4, 3, 2, "LoopedBFS", 2},
                                       {2, 2, 4, 3, 1, "DualPipeV", 2},
                                       {2, 1, 4, 5, 2, "InterleavedZeroBubble", 3},
                                       {1, 4, 1, 5, 1, "1F1B"}});
}

/// Changes to token slices and back, with freezing, another cut and another number of slices in between.
RANK_TEST(Reconfiguration, RunThroughTokenSlicesEqualsOneProcess, 2) {
  Job job(self);
  job.train_now(small_config(Family::gpt2, Task::causal_language_modeling));
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW})
    elastic_run_equals_single_process(job, optimizer,
                                      {{2, 1, 3, 0, 1},
                                       {2, 1, 3, 0, 3, "Seq1F1B", 1, {2, 3, 4}},
                                       {2, 1, 2, 0, 3, "TeraPipe", 1, {4, 5}},
                                       {1, 2, 2, 3, 2, "Seq1F1B", 1, {1, 3, 5}},
                                       {2, 1, 3, 5, 1, "GPipe"}});
}

/// Every family with each of its heads; GPT-2's embeddings are untied during the run.
RANK_TEST(Reconfiguration, RunOfEveryHeadThroughReconfigurationsEqualsOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    elastic_run_equals_single_process(job, Optimizer::kSgd,
                                      {{2, 1, 3, 0, 2}, {1, 2, 2, 0, 1}, {2, 1, 2, 3, 2}, {1, 2, 1, 5, 2}});
  }
}

RANK_TEST(Reconfiguration, RunsThroughHostMemoryEqualOneProcess, 4) {
  Job job = job_through_host(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    elastic_run_equals_single_process(job, Optimizer::kAdamW,
                                      {{2, 2, 3, 0, 2}, {1, 4, 1, 0, 1}, {4, 1, 2, 3, 2}, {1, 2, 1, 5, 2}});
  }
}

/// After a reconfiguration the next step is bitwise equal to that of a run started in the new layout from the same
/// weights and moments.
RANK_TEST(Reconfiguration, StepAfterReconfigurationEqualsAFreshStartInTheNewLayoutToTheBit, 2) {
  Job job(self);
  const std::unique_ptr<Samples> samples = small_samples(job.config, 9);
  const Samples& data = *samples;
  std::vector<int> order(9);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(data, order, 9, 0);
  RankSession session = job.session(data, Optimizer::kAdamW, DType::kFloat32);
  session.start(small_phase(2, 1, 3, "1F1B", 0), 0,
                [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
                  randomise_layer(job.config, layer, kSeed, state);
                });
  Trace trace;
  for (int step = 0; step < 3; ++step)
    session.runner()->run_iteration(batch, nullptr, step,
                                    {.rule = {.learning_rate = 0.01, .step = step + 1}, .gradient_clip = 1}, trace);
  const Phase after = small_phase(1, 2, 2, "1F1B", 3);
  session.enter(after);
  RankSession fresh = job.session(data, Optimizer::kAdamW, DType::kFloat32);
  fresh.start(after, 3, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    const at::NoGradGuard no_grad;
    const LayerState& from = session.layers().at(layer);
    state.weights.copy_(from.weights);
    CHECK_RANK(state.trains() == from.trains(), "the same layers train");
    if (!state.trains()) return;
    state.moments.first.copy_(from.moments.first);
    state.moments.second.copy_(from.moments.second);
  });
  for (RankSession* one : {&session, &fresh})
    one->runner()->run_iteration(batch, nullptr, 3, {.rule = {.learning_rate = 0.01, .step = 4}, .gradient_clip = 1},
                                 trace);
  for (const auto& [layer, state] : session.layers()) {
    CHECK_RANK(at::equal(state.weights, fresh.layers().at(layer).weights), fmt::format("layer {}", layer));
  }
}

/// Oracle: an idle rank has nothing on its device, and its offloaded moments are unchanged.
RANK_TEST(Reconfigure, OffloadedWeightsOfALayerThatHasGoneAreNotOnTheDevice, 2) {
  Job job(self);
  const std::unique_ptr<Samples> data = small_samples(job.config, 9);
  RankSession session = job.session(*data, Optimizer::kAdamW, DType::kFloat32);
  const Bytes before = job.device->live_bytes();
  session.start(small_phase(2, 1, 3, "1F1B", 0), 0,
                [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
                  randomise_layer(job.config, layer, kSeed, state);
                });
  std::map<int, at::Tensor> weights;
  for (const auto& [layer, state] : session.layers()) weights[layer] = state.weights.detach().clone();
  const int first_trainable = 5;  // the second of the small model's blocks ends before it
  session.enter(small_phase(1, 1, 3, "1F1B", first_trainable));
  CHECK_RANK(session.layers().empty() == (self.rank == 1), "rank 1 is idle");
  bool has_offloaded = false;
  for (const auto& [layer, moments] : session.offloaded()) {
    has_offloaded = true;
    CHECK_RANK(at::equal(moments.weights, weights.at(layer)), fmt::format("layer {}", layer));
  }
  CHECK_RANK(has_offloaded, "both ranks had layers that froze");
  weights.clear();
  if (self.rank == 1) CHECK_RANK(job.device->live_bytes() == before, std::to_string(job.device->live_bytes() - before));
}

/// A rank is lost exactly before a freeze: the held layers are still trainable, and the next phase freezes them.
/// Oracle: the session that entered that phase without a loss.
TEST(RankSession, GoesOnWithHeldLayersInAPhaseThatFreezesThemAsOneThatEnteredIt) {
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW}) {
    Job job{RankEnvironment{}};
    const std::unique_ptr<Samples> data = small_samples(job.config, 9);
    std::vector<int> order(9);
    std::iota(order.begin(), order.end(), 0);
    const MiniBatch batch = mini_batch(*data, order, 9, 0);
    Trace trace;
    const auto train = [&](RankSession& session, int step) {
      const UpdateRule rule{.optimizer = optimizer, .learning_rate = 0.01, .step = step + 1};
      return session.runner()->run_iteration(batch, nullptr, step, {.rule = rule, .gradient_clip = 1}, trace).loss;
    };
    const auto begin = [&](RankSession& session) {
      session.start(small_phase(1, 1, 3, "1F1B", 0), 0,
                    [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
                      randomise_layer(job.config, layer, kSeed, state);
                    });
      for (int step = 0; step < 3; ++step) train(session, step);
    };
    Phase freezing = small_phase(1, 1, 3, "1F1B", 3);
    freezing.from_step = 3;
    RankSession undisturbed = job.session(*data, optimizer, DType::kFloat32),
                lost = job.session(*data, optimizer, DType::kFloat32),
                recovered = job.session(*data, optimizer, DType::kFloat32);
    begin(undisturbed);
    begin(lost);
    undisturbed.enter(freezing);
    recovered.start_with(freezing, 3, *lost.release(), {});

    ASSERT_EQ(recovered.offloaded().size(), optimizer_moments(optimizer) > 0 ? 3u : 0u);
    for (const auto& [layer, moments] : undisturbed.offloaded()) {
      EXPECT_TRUE(at::equal(recovered.offloaded().at(layer).moments.first, moments.moments.first)) << layer;
      EXPECT_TRUE(at::equal(recovered.offloaded().at(layer).moments.second, moments.moments.second)) << layer;
    }
    EXPECT_EQ(train(recovered, 3), train(undisturbed, 3));
    for (const auto& [layer, state] : undisturbed.layers()) {
      EXPECT_EQ(recovered.layers().at(layer).trains(), layer >= 3) << layer;
      EXPECT_TRUE(at::equal(recovered.layers().at(layer).weights, state.weights)) << layer;
    }
  }
}

}  // namespace
}  // namespace frostpipe::test
