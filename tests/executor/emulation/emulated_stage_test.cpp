// Oracle: sums of a made-up profile's figures, computed by hand.
#include "executor/emulation/emulated_stage.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "executor/cache/store/activation_store.h"
#include "executor/device/memory_meter.h"
#include "executor/emulation/shrunk_model.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using Ints = std::vector<int>;
using Shape = std::vector<std::int64_t>;

/// Empty where there is no tensor.
Shape shape_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.sizes().vec() : Shape(); }

constexpr Nanoseconds kUnit = 10'000;
constexpr int kShrink = 2, kHidden = 2;  // 4 / kShrink

/// Per sample, in units: 1 forward, 4 input gradient, 16 weight gradient, 2 frozen; 30 per update. Two blocks, so
/// six layers.
Profile slow_profile() {
  return test::synthetic_profile(2, {{.forward_ns = kUnit,
                                      .input_gradient_ns = 4 * kUnit,
                                      .weight_gradient_ns = 16 * kUnit,
                                      .frozen_forward_ns = 2 * kUnit,
                                      .update_ns = 30 * kUnit,
                                      .output_activation_bytes = 8,
                                      .saved_activation_bytes = 1 << 20,
                                      .workspace_bytes = 1 << 22,
                                      .parameter_count = 100}});
}

/// The times of the actions, without tensors, which take time to make.
Profile small_profile() {
  Profile profile = slow_profile();
  for (Measurement& one : profile.measurements) one.cost.saved_activation_bytes = one.cost.workspace_bytes = 0;
  return profile;
}

Phase phase_of(Partition partition, int first_trainable_layer) {
  Phase phase;
  phase.layout.pipeline_parallel_size = static_cast<int>(partition.size());
  phase.partition = std::move(partition);
  phase.first_trainable_layer = first_trainable_layer;
  return phase;
}

/// Four samples of eight tokens, as in the profile.
struct FourSamples {
  Ints samples{0, 1, 2, 3};
  MiniBatch batch{.samples = samples, .lengths = {8, 8, 8, 8}};
};

/// One stage of a phase, and the times of its actions.
struct Stage {
  Stage(const Profile& profile, const Phase& phase, int stage, ActivationCache* cache = nullptr)
      : factory(profile, {.device_type = "cpu", .shrink = kShrink, .tensors = at::TensorOptions().dtype(at::kFloat)},
                clock, cache),
        compute(factory.make_stage(phase, stage, layers, /*ranks=*/{})) {
    compute->begin_iteration(four.batch, {0, 4}, nullptr, {});
  }

  /// The virtual time that `act` takes, in units.
  double units_of(const auto& act) {
    const Nanoseconds begin = clock.now();
    act();
    return static_cast<double>(clock.now() - begin) / kUnit;
  }
  at::Tensor forward(SampleRange range = {0, 2}) { return compute->forward(Part{0}, range, {}); }

  void expect_forward(double expected) {
    EXPECT_EQ(units_of([&] { forward(); }), expected);
    compute->backward(Part{0}, {});
  }
  void expect_backward(double expected) {
    forward();
    EXPECT_EQ(units_of([&] { compute->backward(Part{0}, {}); }), expected);
  }
  void expect_update(double expected) {
    EXPECT_EQ(units_of([&] { compute->update({}); }), expected);
  }

  FourSamples four;
  VirtualClock clock;
  std::map<int, LayerState> layers;
  EmulatedStageFactory factory;
  std::unique_ptr<StageCompute> compute;
};

TEST(ShrunkHiddenSize, IsRoundedUpAndNeverNothing) {
  Model model;
  model.hidden_size = 768;
  EXPECT_EQ(shrunk_hidden_size(model, 1), 768);
  EXPECT_EQ(shrunk_hidden_size(model, 100), 8);
  EXPECT_EQ(shrunk_hidden_size(model, 768), 1);
  EXPECT_EQ(shrunk_hidden_size(model, 10'000), 1);
}

/// By hand: 100 words of 768 values, divided: 76,800 / 512 = 150 rows of one value; 76,800 / 100 = 768 are 109 rows of
/// 7 values, and 5 values that are left out.
TEST(ShrunkTiedValues, AreAsManyAsTheWholeOnesDivided) {
  Model model;
  model.hidden_size = 768;
  model.vocab_size = 100;
  EXPECT_EQ(shrunk_tied_values(model, 1), 0) << "nothing is tied";
  model.tied_parameter_count = 76'800;
  EXPECT_EQ(shrunk_tied_values(model, 1), 76'800);
  EXPECT_EQ(shrunk_tied_values(model, 512), 150);
  EXPECT_EQ(shrunk_tied_values(model, 100), 763);
  EXPECT_EQ(shrunk_tied_values(model, 100'000), 0);
}

/// 1000 parameters, including a table of 10 words of 4 values; with a shrink of 2 a row has 2 values.
TEST(EmulatedLayer, IsShrunkAndHoldsItsNumber) {
  Profile profile = slow_profile();
  profile.model.vocab_size = 10;
  for (Layer& layer : profile.model.layers) layer.parameter_count = 1000;
  profile.model.layers[2].parameter_count = 1;
  VirtualClock clock;
  const EmulatedStageFactory factory(
      profile, {.device_type = "cpu", .shrink = kShrink, .tensors = at::TensorOptions().dtype(at::kFloat)}, clock,
      nullptr);
  const LayerState embedding = factory.make_layer(0, /*trains=*/true, {}), tiny = factory.make_layer(2, true, {}),
                   frozen = factory.make_layer(3, false, {});
  ASSERT_EQ(embedding.parameters.size(), 2U);
  EXPECT_EQ(embedding.parameters[0].value.sizes(), (at::IntArrayRef{10, 2}));
  EXPECT_EQ(embedding.parameters[1].value.sizes(), (at::IntArrayRef{480}));
  EXPECT_TRUE(at::equal(embedding.weights, at::full({500}, 1.0F)));
  EXPECT_EQ(embedding.moments.first.numel(), 500);
  EXPECT_TRUE(at::equal(tiny.weights, at::full({1}, 3.0F))) << "there is something to move";
  EXPECT_TRUE(at::equal(frozen.weights, at::full({500}, 4.0F)));
  EXPECT_FALSE(frozen.trains());
}

/// Layers 2 and 3 of a pipeline that trains from 1 on: two samples are 2 x 2 x 1, B is 2 x 2 x (4 + 16).
TEST(EmulatedStage, OfTheMiddleTakesTheTimesOfItsLayers) {
  const Profile profile = small_profile();
  Stage stage(profile, phase_of({{0, 2}, {2, 4}, {4, 6}}, 1), 1);
  stage.expect_forward(4);
  stage.expect_backward(80);
  stage.expect_update(60);
}

/// Layers 0 and 1 are frozen, 2 needs no gradient of its input: 2 x (2 + 2 + 1), 2 x 16.
TEST(EmulatedStage, AtTheFrozenBoundaryTakesNoInputGradient) {
  const Profile profile = small_profile();
  Stage stage(profile, phase_of({{0, 3}, {3, 6}}, 2), 0);
  stage.expect_forward(10);
  stage.expect_backward(32);
  stage.expect_update(30);
}

/// Layers 0 to 2 again, with everything except the stage's input recomputed: 3 x 2 x 1 more.
TEST(EmulatedStage, ComputesAgainInTheBackward) {
  const Profile profile = small_profile();
  Phase phase = phase_of({{0, 3}, {3, 6}}, 0);
  phase.recompute = RecomputeMode::stage;
  Stage stage(profile, phase, 0);
  stage.expect_forward(6);
  stage.expect_backward(3 * 32 + 2 * 8 + 6);
}

/// I and W as measured separately, and the memory kept between them: layers 2 and 3 of a pipeline that trains from 2
/// on, with two samples: I is 2 x (16 - 3) + 2 x 5, W 2 x 2 x 3; half of 2 x 2 x 4096 B is allocated.
TEST(EmulatedStage, SplitsTheBackward) {
  MemoryMeter::install();
  Profile profile = small_profile();
  for (Measurement& one : profile.measurements) {
    const int size = one.key.micro_batch_size;
    one.cost.split_backward = SplitBackward{size * 5 * kUnit, size * 3 * kUnit, Bytes{size} * 4096};
  }
  Stage stage(profile, phase_of({{0, 2}, {2, 4}, {4, 6}}, 2), 1);
  stage.forward();
  EXPECT_EQ(stage.units_of([&] { stage.compute->input_gradient(Part{0}, {}); }), 36);
  EXPECT_EQ(stage.units_of([&] { stage.compute->weight_gradient(Part{0}); }), 12);
  const Bytes before = MemoryMeter::live_bytes();
  stage.forward();
  stage.compute->input_gradient(Part{0}, {});
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 2 * 2 * 4096 / kShrink);
  stage.compute->weight_gradient(Part{0});
  EXPECT_EQ(MemoryMeter::live_bytes(), before);
}

TEST(EmulatedStage, SendsWhatItsNeighboursExpect) {
  const Profile profile = small_profile();
  const Phase phase = phase_of({{0, 1}, {1, 3}, {3, 5}, {5, 6}}, 2);
  const auto shapes = [&](int pipeline_rank) {
    Stage stage(profile, phase, pipeline_rank);
    const at::Tensor output = stage.forward(),
                     gradient = pipeline_rank > 0 ? stage.compute->backward(Part{0}, {}) : output;
    return std::pair(shape_of(output), shape_of(gradient));
  };
  const Shape activation{2 * 8, kHidden}, none;
  EXPECT_EQ(shapes(0).first, activation);
  EXPECT_EQ(shapes(1), (std::pair{activation, none})) << "nobody before it trains";
  EXPECT_EQ(shapes(2), (std::pair{activation, activation}));
  EXPECT_EQ(shapes(3), (std::pair{none, activation})) << "the last one has the loss";
}

/// Layers 2 and 3 keep 1 MiB per sample each, half of which is allocated; 4 MiB of workspace per sample are temporary.
TEST(EmulatedStage, KeepsItsActivationsFromForwardToBackward) {
  MemoryMeter::install();
  const Profile profile = slow_profile();
  Stage stage(profile, phase_of({{0, 2}, {2, 4}, {4, 6}}, 1), 1);
  const Bytes before = MemoryMeter::live_bytes(), mebibyte = 1 << 20;
  MemoryMeter::reset_peak();
  stage.compute->forward(Part{0}, {0, 2}, {});
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 2 * 2 * mebibyte / kShrink);
  EXPECT_EQ(MemoryMeter::peak_bytes() - before, (2 * 2 + 2 * 4) * mebibyte / kShrink);
  stage.compute->forward(Part{1}, {2, 3}, {});
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 3 * 2 * mebibyte / kShrink);
  stage.compute->backward(Part{0}, {});
  EXPECT_EQ(MemoryMeter::live_bytes() - before, 2 * mebibyte / kShrink);
  stage.compute->backward(Part{1}, {});
  EXPECT_EQ(MemoryMeter::live_bytes(), before);
}

/// Samples 0 to 2 are in the cache at the boundary, 3 is not. An entry of 8 x 4 floats takes 5 units of latency, and
/// 128 bytes at 128 bytes per 10 units to read and per 20 units to write.
class EmulatedCacheTest : public testing::Test {
 protected:
  EmulatedCacheTest() {
    constexpr std::int64_t kBytesPerSecond = 128 * 1'000'000'000LL / (10 * kUnit);
    profile_.cache = CacheSpeed{.read = {5 * kUnit, kBytesPerSecond}, .write = {5 * kUnit, kBytesPerSecond / 2}};
    ActivationStoreOptions options{.entry_bytes = {}, .memory_bytes = 1 << 16, .disk_folder = {}};
    std::vector<CacheableSample> samples;
    for (int sample = 0; sample < 4; ++sample) {
      samples.push_back({.tokens = 8, .key = static_cast<std::uint64_t>(100 + sample)});
      options.entry_bytes.push_back(ActivationCache::entry_bytes(8, kHidden, at::kFloat));
    }
    store_ = ActivationStore::create(options, "emulated_stage_test");
    cache_ = std::make_unique<ActivationCache>(store_.get(), samples, Ints{0, 1, 2, 3}, kHidden, at::kFloat,
                                               at::TensorOptions().dtype(at::kFloat));
    cache_->set_boundary({.layer = 2, .key = 7});
    cache_->write(Ints{0, 1, 2}, at::zeros({3 * 8, kHidden}));
    phase_.cache.on = true;
  }
  Profile profile_ = small_profile();
  Phase phase_ = phase_of({{0, 3}, {3, 6}}, 2);
  std::unique_ptr<ActivationStore> store_;
  std::unique_ptr<ActivationCache> cache_;
};

/// Cached samples are read, 3 x (5 + 10), and not computed: 2 + 2 for one sample, 4 x 1 for the trainable layer.
TEST_F(EmulatedCacheTest, ReadsWhatThereIsAndComputesTheRest) {
  Stage stage(profile_, phase_, 0, cache_.get());
  EXPECT_EQ(stage.units_of([&] { stage.compute->cache_read(0, {0, 4}); }), 45);
  EXPECT_EQ(stage.units_of([&] { stage.forward({0, 4}); }), 8);
}

/// The one sample that is not in the cache costs 5 + 20, once; then it is in the cache.
TEST_F(EmulatedCacheTest, WritesWhatIsNotThere) {
  Stage stage(profile_, phase_, 0, cache_.get());
  const std::int64_t written_before = cache_->counts().written;
  stage.compute->cache_read(0, {0, 4});
  stage.forward({0, 4});
  EXPECT_EQ(stage.units_of([&] { stage.compute->cache_write(0, {0, 4}); }), 25);
  EXPECT_EQ(cache_->counts().written - written_before, 1);
  EXPECT_EQ(cache_->take(Ints{3}, 2).layers, Ints{2});
}

}  // namespace
}  // namespace frostpipe
