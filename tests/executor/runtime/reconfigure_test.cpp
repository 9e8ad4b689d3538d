// Oracle: one process that knows no stages (reference_model.h) and trains beside the ranks: losses within 1e-9, weights
// after SGD within 1e-10; what a reconfiguration moves stays equal to the bit.
#include "executor/runtime/reconfigure.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/executor/agreed_loss.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/reference_model.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

/// A number that changes when any weight of the layer does.
double checksum(const at::Tensor& flat) {
  return (flat.to(at::kDouble) * at::arange(1, flat.numel() + 1, at::TensorOptions().dtype(at::kDouble)))
      .sum()
      .item<double>();
}

/// Checksums of all layers, each from the rank that holds it first.
std::vector<double> checksums(Job& job, RankSession& session) {
  std::vector<double> sums(job.model.layers.size(), 0.0);
  const std::vector<int> holders = session.holders();
  for (const auto& [layer, state] : session.layers()) {
    if (holders[layer] == job.communicator->rank()) sums[layer] = checksum(state.weights);
  }
  return job.communicator->sum(sums);
}

struct Segment {
  int p, d, m, first_trainable, steps;
  const char* schedule = "1F1B";
  int virtual_stages = 1;
  std::vector<int> token_slices{};
};

/// One mini-batch after the other, trained by the ranks and beside it in one process.
struct TwinRun {
  TwinRun(Job& with_job, Optimizer with_optimizer)
      : job(with_job),
        optimizer(with_optimizer),
        data(small_samples(job.config, kSamples)),
        order(kSamples),
        session(job.session(*data, optimizer, kDtype)),
        reference(job.config, kSeed, layer_types_of(kDtype).kept) {
    std::iota(order.begin(), order.end(), 0);
    batch = mini_batch(*data, order, kSamples, 0);
    whole = job.whole(*data, batch, kDtype);
  }
  static constexpr int kSamples = 13;
  static constexpr DType kDtype = DType::kFloat64;
  Job& job;
  Optimizer optimizer;
  std::unique_ptr<Samples> data;
  std::vector<int> order;
  MiniBatch batch;
  MicroBatch whole;
  RankSession session;
  ReferenceModel reference;
  int step = 0;

  void enter(const Segment& segment) {
    Phase phase =
        small_phase(segment.p, segment.d, segment.m, segment.schedule, segment.first_trainable, segment.virtual_stages);
    phase.token_slices = segment.token_slices;
    phase.from_step = step;
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
  }

  void train_one_step(int first_trainable) {
    const UpdateRule rule{.optimizer = optimizer, .learning_rate = 0.01, .weight_decay = 0.1, .step = step + 1};
    Trace trace;
    IterationResult result;
    if (session.runner())
      result = session.runner()->run_iteration(batch, nullptr, step, {.rule = rule, .gradient_clip = 1}, trace);
    const double loss = agreed_loss(*job.communicator, result);
    const double expected = reference.loss_and_gradients(whole, first_trainable);
    CHECK_RANK(std::abs(loss - expected) <= 1e-9 * (1 + std::abs(expected)),
               fmt::format("step {}: loss {} instead of {}", step, loss, expected));
    reference.step(optimizer, 0.01, 0.1, 1.0, first_trainable);
    // AdamW divides by the root of tiny second moments (the key bias has gradient 0): compared by loss, SGD by weights.
    for (const auto& [layer, state] : session.layers()) {
      const at::Tensor w0 = reference.weights(layer);
      CHECK_RANK(optimizer != Optimizer::kSgd || l2(state.weights - w0) <= 1e-10 * l2(w0),
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

  /// Moments of what froze are offloaded on a rank that trained it, none lost.
  void check_offloaded_moments(int first_trainable) {
    std::vector<double> offloaded(job.model.layers.size(), 0.0);
    for (const auto& [layer, moments] : session.offloaded())
      offloaded[layer] = moments.first_moment.norm().item<double>();
    offloaded = job.communicator->sum(offloaded);
    for (int layer = 0; layer < first_trainable; ++layer)
      CHECK_RANK(offloaded[layer] > 0, fmt::format("moments of layer {}", layer));
  }
};

/// Trains through the segments and beside it in one process; both must stay equal. 4 -> 2 -> 1 stages, frozen layers on
/// stages of the middle, batches that nothing divides, one rank idle at first in a world of 4 for p x d = 3.
void elastic_run_equals_single_process(Job& job, Optimizer optimizer, const std::vector<Segment>& segments) {
  TwinRun run(job, optimizer);
  for (const Segment& segment : segments) {
    run.enter(segment);
    for (int i = 0; i < segment.steps; ++i) run.train_one_step(segment.first_trainable);
    run.check_that_replicas_hold_the_same_bits(segment.d);
  }
  if (optimizer == Optimizer::kAdamW) run.check_offloaded_moments(segments.back().first_trainable);
}

void elastic_run_equals_single_process(const RankEnvironment& self, Optimizer optimizer,
                                       const std::vector<Segment>& segments) {
  Job job(self);
  elastic_run_equals_single_process(job, optimizer, segments);
}

const std::vector<Segment> kFourTwoOne{
    {4, 1, 3, 0, 2}, {4, 1, 2, 3, 2}, {2, 2, 2, 3, 2}, {1, 4, 1, 5, 2}, {1, 4, 2, 7, 1}};
const std::vector<Segment> kWithIdleRanks{{3, 1, 2, 0, 2}, {2, 1, 2, 1, 1}, {1, 3, 1, 3, 2}, {2, 2, 1, 5, 1}};

RANK_TEST(Exactness, SgdRunOf4To2To1StagesEqualsOneProcess, 4) {
  elastic_run_equals_single_process(self, Optimizer::kSgd, kFourTwoOne);
}

RANK_TEST(Exactness, AdamWRunOf4To2To1StagesEqualsOneProcess, 4) {
  elastic_run_equals_single_process(self, Optimizer::kAdamW, kFourTwoOne);
}

RANK_TEST(Exactness, RunWithRanksThatAreIdleForAWhileEqualsOneProcess, 4) {
  elastic_run_equals_single_process(self, Optimizer::kSgd, kWithIdleRanks);
}

/// Between whole backwards and split ones, with freezing and another layout on the way.
RANK_TEST(Exactness, RunThroughSchedulesThatSplitTheBackwardEqualsOneProcess, 2) {
  Job job(self);
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW})
    elastic_run_equals_single_process(job, optimizer,
                                      {{2, 1, 3, 0, 2},
                                       {2, 1, 3, 0, 2, "ZB-H1"},
                                       {2, 1, 4, 3, 2, "ZB-H2"},
                                       {1, 2, 2, 3, 1, "ZB-H1"},
                                       {2, 1, 2, 5, 1}});
}

/// Layers go to ranks that hold several ranges of them, to those of a V, and back; rank 3 is idle for a while.
RANK_TEST(Exactness, RunThroughSchedulesOfSeveralStagesPerRankEqualsOneProcess, 4) {
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

/// Into token slices and out of them, with freezing, another cut and another number of slices on the way.
RANK_TEST(Exactness, RunThroughTokenSlicesEqualsOneProcess, 2) {
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

/// Every family with each of its heads; GPT-2's embeddings are untied on the way.
RANK_TEST(Exactness, RunOfEveryHeadThroughReconfigurationsEqualsOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    elastic_run_equals_single_process(job, Optimizer::kSgd,
                                      {{2, 1, 3, 0, 2}, {1, 2, 2, 0, 1}, {2, 1, 2, 3, 2}, {1, 2, 1, 5, 2}});
  }
}

RANK_TEST(Exactness, RunsThroughHostMemoryEqualOneProcess, 4) {
  Job job = job_through_host(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    elastic_run_equals_single_process(job, Optimizer::kAdamW,
                                      {{2, 2, 3, 0, 2}, {1, 4, 1, 0, 1}, {4, 1, 2, 3, 2}, {1, 2, 1, 5, 2}});
  }
}

/// After a reconfiguration the next step is, to the bit, that of a run started fresh in the new layout from the same
/// weights and moments.
RANK_TEST(Exactness, StepAfterReconfigurationEqualsAFreshStartInTheNewLayoutToTheBit, 2) {
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
    state.first_moment.copy_(from.first_moment);
    state.second_moment.copy_(from.second_moment);
  });
  for (RankSession* one : {&session, &fresh})
    one->runner()->run_iteration(batch, nullptr, 3, {.rule = {.learning_rate = 0.01, .step = 4}, .gradient_clip = 1},
                                 trace);
  for (const auto& [layer, state] : session.layers()) {
    CHECK_RANK(at::equal(state.weights, fresh.layers().at(layer).weights), fmt::format("layer {}", layer));
  }
}

/// A loss exactly before a freeze: what is held still trains, and the phase to go on with freezes it. Oracle: the
/// session that went into that phase without a loss.
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

    ASSERT_EQ(recovered.offloaded().size(), optimizer == Optimizer::kAdamW ? 3u : 0u);
    for (const auto& [layer, moments] : undisturbed.offloaded()) {
      EXPECT_TRUE(at::equal(recovered.offloaded().at(layer).first_moment, moments.first_moment)) << layer;
      EXPECT_TRUE(at::equal(recovered.offloaded().at(layer).second_moment, moments.second_moment)) << layer;
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
