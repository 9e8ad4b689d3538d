// Oracle: the layers of each rank, by hand, from the stages of a partition and the ranks of a placement. Weights hold
// the layer's number.
#include "executor/runtime/rank_session.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/models/folder/model_folder.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"
#include "tests/executor/test_device.h"
#include "tests/executor/wrapped_device.h"

namespace frostpipe::test {
namespace {

using Ints = std::vector<int>;

constexpr int kStep = 7;

void fill_with_number(int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
  state.weights.fill_(layer + 1);
}

/// The layers that a rank has; ~layer if it is frozen.
Ints layers_of(RankSession& session) {
  Ints layers;
  for (const auto& [layer, state] : session.layers()) layers.push_back(state.trains() ? layer : ~layer);
  return layers;
}

bool holds_numbers(RankSession& session) {
  for (const auto& [layer, state] : session.layers())
    if (!at::equal(state.weights, at::full_like(state.weights, layer + 1))) return false;
  return true;
}

/// Data, and a session of the job's model with SGD.
struct SessionTest {
  explicit SessionTest(const RankEnvironment& self) : SessionTest(Job(self)) {}
  explicit SessionTest(Job with_job) : job(std::move(with_job)), data(small_samples(job.config, kSamples)) {
    std::iota(order.begin(), order.end(), 0);
    batch = mini_batch(*data, order, kSamples, 0);
  }
  RankSession session() { return job.session(*data, Optimizer::kSgd, DType::kFloat32); }
  static constexpr int kSamples = 5;
  Job job;
  std::unique_ptr<Samples> data;
  Ints order = Ints(kSamples);
  MiniBatch batch;
};

/// Two stages of one replica, on ranks 2 and 0; layers 0 and 1 are frozen.
Ints holders_of(const RankSession& session) {
  Ints holders;
  for (const std::vector<LayerPart>& parts : session.parts_of_layers()) holders.push_back(parts.front().rank);
  return holders;
}

RANK_TEST(RankSession, StartsWithTheLayersOfItsStage, 3) {
  SessionTest test(self);
  RankSession session = test.session();
  CHECK_RANK(!session.has_phase(), "not yet");
  Phase phase = small_phase(2, 1, 2, "1F1B", /*first_trainable_layer=*/2);
  phase.partition = {{0, 3}, {3, 8}};
  phase.layout.placement = {2, 0};
  Ints filled;
  session.start(phase, kStep, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>& offloaded) {
    filled.push_back(layer);
    fill_with_number(layer, state, offloaded);
  });
  const std::vector<Ints> stages{{3, 4, 5, 6, 7}, {}, {0, 1, 2}};
  CHECK_RANK(filled == stages[self.rank], "each is filled once, in their order");
  CHECK_RANK(layers_of(session) == (self.rank == 2 ? Ints{~0, ~1, 2} : stages[self.rank]), "layers of the stage");
  CHECK_RANK(session.has_phase() && session.phase() == phase, "the phase");
  CHECK_RANK((session.runner() == nullptr) == (self.rank == 1), "rank 1 is idle");
  CHECK_RANK(holders_of(session) == (Ints{2, 2, 2, 0, 0, 0, 0, 0}), "holders");
  CHECK_RANK(session.reports_figures() == (self.rank == 0), "the last stage reports");
  CHECK_RANK(session.num_updates() == kStep, "none since");
}

/// Rank 1 is the first of two replicas of all layers.
RANK_TEST(RankSession, TheFirstReplicaAnswers, 2) {
  SessionTest test(self);
  RankSession session = test.session();
  Phase phase = small_phase(1, 2, 1, "1F1B", 0);
  phase.layout.placement = {1, 0};
  session.start(phase, kStep, fill_with_number);
  CHECK_RANK(session.layers().size() == 8 && holders_of(session) == Ints(8, 1), "holders");
  CHECK_RANK(session.reports_figures() == (self.rank == 1), "one rank reports");
}

RANK_TEST(RankSession, CountsTheUpdatesThatItsLayersHaveDone, 2) {
  SessionTest test(self);
  RankSession session = test.session();
  session.start(small_phase(2, 1, 2, "1F1B", 0), kStep,
                [&](int layer, LayerState& state, auto&) { randomise_layer(test.job.config, layer, kSeed, state); });
  Trace trace;
  for (int step = kStep; step < kStep + 3; ++step) {
    CHECK_RANK(session.num_updates() == step, std::to_string(session.num_updates()));
    session.runner()->run_iteration(test.batch, nullptr, step,
                                    {.rule = {.optimizer = Optimizer::kSgd, .step = step + 1}}, trace);
  }
  CHECK_RANK(session.num_updates() == kStep + 3, std::to_string(session.num_updates()));
}

/// The layers outlive the session, and the next one begins with them: rank 0 keeps 0 and 1, gets nothing and drops 2
/// and 3, which rank 1 gets by two moves. Gradients of the interrupted iteration are discarded.
RANK_TEST(RankSession, GoesOnWithWhatWasHeld, 2) {
  SessionTest test(self);
  std::optional<HeldLayers> held;
  {
    RankSession before = test.session();
    before.start(small_phase(2, 1, 2, "1F1B", 0), kStep, fill_with_number);
    for (auto& [layer, state] : before.layers()) state.gradients.fill_(9);
    held = before.release();
    CHECK_RANK(held.has_value() && held->layers.size() == 4, "four of eight layers");
  }
  Phase phase = small_phase(2, 1, 2, "1F1B", 0);
  phase.partition = {{0, 2}, {2, 8}};
  const std::vector<TensorMove> moves{{.layer = 2, .from_rank = 0, .to_rank = 1},
                                      {.layer = 3, .from_rank = 0, .to_rank = 1}};
  RankSession session = test.session();
  session.start_with(phase, kStep, std::move(*held), moves);
  CHECK_RANK(layers_of(session) == (self.rank == 0 ? Ints{0, 1} : Ints{2, 3, 4, 5, 6, 7}), "layers of the stage");
  CHECK_RANK(holds_numbers(session), "each with its weights");
  for (const auto& [layer, state] : session.layers())
    CHECK_RANK(at::equal(state.gradients, at::zeros_like(state.gradients)), fmt::format("layer {}", layer));
}

/// An interruption of a stage while it works.
struct Interruption {
  std::function<void(Part)> before_weight_gradient = [](Part) {};
  std::function<void()> when_asked_for_loss = [] {};
};

class InterruptedStage final : public StageCompute {
 public:
  InterruptedStage(std::unique_ptr<StageCompute> stage, const Interruption& interruption)
      : stage_(std::move(stage)), interruption_(interruption) {}
  at::Tensor make_activation(std::int64_t tokens) const override { return stage_->make_activation(tokens); }
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                       SampleRange next_share) override {
    stage_->begin_iteration(batch, share, next, next_share);
  }
  void cache_read(int micro_batch, SampleRange range) override { stage_->cache_read(micro_batch, range); }
  at::Tensor forward(Part part, SampleRange range, at::Tensor input) override {
    return stage_->forward(part, range, std::move(input));
  }
  void cache_write(int micro_batch, SampleRange range) override { stage_->cache_write(micro_batch, range); }
  at::Tensor backward(Part part, at::Tensor gradient) override { return stage_->backward(part, std::move(gradient)); }
  at::Tensor input_gradient(Part part, at::Tensor gradient) override {
    return stage_->input_gradient(part, std::move(gradient));
  }
  void weight_gradient(Part part) override {
    interruption_.before_weight_gradient(part);
    stage_->weight_gradient(part);
  }
  at::Tensor looked_up_rows() const override { return stage_->looked_up_rows(); }
  void update(const UpdateRule& rule) override { stage_->update(rule); }
  at::Tensor loss() const override {
    interruption_.when_asked_for_loss();
    return stage_->loss();
  }
  at::Tensor evaluate(const MiniBatch& batch, at::Tensor input) override {
    return stage_->evaluate(batch, std::move(input));
  }
  AnswerShape answer_shape() const override { return stage_->answer_shape(); }

 private:
  std::unique_ptr<StageCompute> stage_;
  const Interruption& interruption_;
};

struct InterruptedStageFactory final : StageFactory {
  InterruptedStageFactory(const StageFactory& with_stages, const Interruption& by)
      : stages(with_stages), interruption(by) {}
  LayerState make_layer(int layer, bool trains, const TensorSlice& slice) const override {
    return stages.make_layer(layer, trains, slice);
  }
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage, std::map<int, LayerState>& layers,
                                           const TensorRanks& ranks) const override {
    return std::make_unique<InterruptedStage>(stages.make_stage(phase, stage, layers, ranks), interruption);
  }
  const StageFactory& stages;
  const Interruption& interruption;
};

/// Tensors that I has kept and W has not used yet are discarded with the gradients. Oracle: the uninterrupted steps.
TEST(RankSession, GoesOnToTheBitAfterALossBetweenIAndW) {
  SessionTest test(RankEnvironment{});
  const Phase phase = small_phase(1, 1, 3, "ZB-H1", /*first_trainable_layer=*/3);
  const auto fill = [&](int layer, LayerState& state, auto&) { randomise_layer(test.job.config, layer, kSeed, state); };
  const auto train = [&](RankSession& session, int step) {
    Trace trace;
    session.runner()->run_iteration(
        test.batch, nullptr, step,
        {.rule = {.optimizer = Optimizer::kSgd, .learning_rate = 0.05, .step = step + 1}, .gradient_clip = 1}, trace);
  };
  RankSession expected = test.session();
  expected.start(phase, 0, fill);
  for (int step = 0; step < 3; ++step) train(expected, step);

  Interruption interruption;
  const InterruptedStageFactory factory(*test.job.factories.back(), interruption);
  RankSession before(test.job.model, factory, *test.job.communicator, *test.job.device, Optimizer::kSgd,
                     DType::kFloat32);
  before.start(phase, 0, fill);
  train(before, 0);
  interruption.before_weight_gradient = [](Part part) {
    if (part.micro_batch == 1) throw PeerLost("between I and W");
  };
  EXPECT_THROW(train(before, 1), PeerLost);
  EXPECT_EQ(before.num_updates(), 1);
  std::optional<HeldLayers> held = before.release();
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->interrupted) << "gradients are not whole";

  RankSession session = test.session();
  session.start_with(phase, 1, std::move(*held), {});
  for (int step = 1; step < 3; ++step) train(session, step);
  for (const auto& [layer, state] : session.layers())
    EXPECT_TRUE(at::equal(state.weights, expected.layers().at(layer).weights)) << "layer " << layer;
}

/// Both stages have all gradients of the second step when rank 0 is cut off, before they have agreed on their norm.
/// Oracle: the uninterrupted steps, whose norm clips.
RANK_TEST(RankSession, CompletesAnUpdateThatLacksTheGradientNorm, 2) {
  SessionTest test(self);
  const Phase phase = small_phase(2, 1, 2, "1F1B", 0);
  const auto start = [&](RankSession& session) {
    session.start(phase, 0,
                  [&](int layer, LayerState& state, auto&) { randomise_layer(test.job.config, layer, kSeed, state); });
  };
  const auto train = [&](RankSession& session, int step) {
    Trace trace;
    session.runner()->run_iteration(
        test.batch, nullptr, step,
        {.rule = {.optimizer = Optimizer::kSgd, .learning_rate = 0.05, .step = step + 1}, .gradient_clip = 1e-3},
        trace);
  };
  RankSession undisturbed = test.session();
  start(undisturbed);
  for (int step = 0; step < 2; ++step) train(undisturbed, step);
  const std::optional<HeldLayers> expected = undisturbed.release();
  CHECK_RANK(expected && expected->gradient_norm && !expected->interrupted, "nothing is missing");
  CHECK_RANK(*expected->gradient_norm > 1e-3, "clipped");

  Interruption interruption;
  const InterruptedStageFactory factory(*test.job.factories.back(), interruption);
  RankSession session(test.job.model, factory, *test.job.communicator, *test.job.device, Optimizer::kSgd,
                      DType::kFloat32);
  start(session);
  train(session, 0);
  if (self.rank == 0) interruption.when_asked_for_loss = [&] { test.job.communicator->close_connections(); };
  bool lost = false;
  try {
    train(session, 1);
  } catch (const PeerLost&) {
    lost = true;
  }
  CHECK_RANK(lost && session.num_updates() == 1, "the second is not done");
  std::optional<HeldLayers> held = session.release();
  CHECK_RANK(held && held->interrupted, "but can be");
  complete_update(*held->interrupted, *expected->gradient_norm, held->layers);
  for (const auto& [layer, state] : held->layers)
    CHECK_RANK(at::equal(state.weights, expected->layers.at(layer).weights), fmt::format("layer {}", layer));
}

RANK_TEST(RankSession, HoldsNothingWholeWhereAChangeWasInterrupted, 2) {
  SessionTest test(self);
  RankSession session = test.session();
  session.start(small_phase(2, 1, 2, "1F1B", 0), kStep, fill_with_number);
  test.job.communicator->close_connections();
  bool lost = false;
  try {
    session.enter(small_phase(1, 2, 1, "1F1B", 0));
  } catch (const PeerLost&) {
    lost = true;
  }
  CHECK_RANK(lost, "layers cannot move");
  CHECK_RANK(!session.release(), "some may be half moved");
}

struct CountingDevice final : WrappedDevice {
  CountingDevice(std::unique_ptr<ComputeDevice> device, int& releases_of_it)
      : WrappedDevice(std::move(device)), releases(releases_of_it) {}
  void release_kept_memory() override {
    ++releases;
    WrappedDevice::release_kept_memory();
  }
  int& releases;
};

/// Other ranks may need this memory when layers move; steps that only freeze more layers would touch all of it again.
RANK_TEST(RankSession, GivesMemoryBackWhereTheLayoutChanges, 2) {
  int releases = 0;
  SessionTest test(Job(self, std::make_unique<CountingDevice>(test_device(self.local_rank), releases)));
  RankSession session = test.session();
  session.start(small_phase(1, 2, 1, "1F1B", 0), kStep, fill_with_number);
  const int before = releases;
  session.enter(small_phase(1, 2, 1, "1F1B", /*first_trainable_layer=*/3));
  CHECK_RANK(releases == before, "layers froze");
  session.enter(small_phase(2, 1, 2, "1F1B", /*first_trainable_layer=*/3));
  CHECK_RANK(releases == before + 1, "layers moved");
}

TEST(RankSession, UnfreezesNothing) {
  SessionTest test(RankEnvironment{});
  RankSession session = test.session();
  session.start(small_phase(1, 1, 1, "1F1B", 3), kStep, fill_with_number);
  EXPECT_THROW(session.enter(small_phase(1, 1, 1, "1F1B", 1)), InternalError);
  EXPECT_EQ(session.phase().first_trainable_layer, 3);
  EXPECT_TRUE(session.release()) << "nothing has begun";
}

}  // namespace
}  // namespace frostpipe::test
