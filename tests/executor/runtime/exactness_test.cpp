// Oracle: gradients, weights and losses of one process that knows no stages (reference_model.h), within the design's
// bounds: per tensor ||g - g0|| <= 1e-5 ||g0|| + 1e-6 ||G0|| in fp32, 1e-10 ||g0|| + 1e-13 ||G0|| in fp64, G0 = all
// gradients together.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/models/folder/model_folder.h"
#include "executor/runtime/rank_session.h"
#include "executor/runtime/transformer_stage.h"
#include "plan/memory.h"
#include "tests/executor/agreed_loss.h"
#include "tests/executor/ranks.h"
#include "tests/executor/reference_model.h"
#include "tests/executor/shared_device.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

constexpr std::uint64_t kSeed = 5;

double l2(const at::Tensor& t) { return t.to(at::kDouble).norm().item<double>(); }

struct Bounds {
  double relative, overall;
};
Bounds bounds_of(const std::string& dtype) { return dtype == "float32" ? Bounds{1e-5, 1e-6} : Bounds{1e-10, 1e-13}; }

/// What one process that knows no stages finds of a mini-batch.
struct Expected {
  double loss;
  std::vector<at::Tensor> gradients;  // by layer
  double norm;                        // of all gradients together
};

/// Whole job on one rank: its share of everything that the tests need.
struct Job {
  explicit Job(const RankEnvironment& self) : Job(self, make_device("cpu", self.local_rank)) {}
  Job(const RankEnvironment& self, std::unique_ptr<ComputeDevice> with_device)
      : config(small_config()),
        model(model_of(config, "small")),
        device(std::move(with_device)),
        communicator(Communicator::connect(self, *device)) {}
  TransformerConfig config;
  Model model;
  std::unique_ptr<ComputeDevice> device;
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<TransformerStageFactory>> factories;
  std::map<std::tuple<std::size_t, std::string, int>, Expected> expected;  // see expected_of

  /// From now on; sessions of another model must have ended.
  void train_now(const TransformerConfig& other) {
    config = other;
    model = model_of(config, "small");
    expected.clear();
  }
  MicroBatch whole(const Samples& data, const MiniBatch& batch, const std::string& dtype) const {
    return data.load(batch, batch.samples, layer_types_of(dtype).computed, /*with_input=*/true);
  }
  RankSession session(const Samples& data, const std::string& optimizer, const std::string& dtype) {
    factories.push_back(std::make_unique<TransformerStageFactory>(config, model, data, layer_types_of(dtype), at::kCPU,
                                                                  optimizer_moments(optimizer), /*cache=*/nullptr));
    RankSession session(model, *factories.back(), *communicator, *device, optimizer, dtype);
    session.tie(tied_parameter_count(config));
    return session;
  }
};

/// Worked out once for every layout, schedule and number of micro-batches, on none of which it depends.
const Expected& expected_of(Job& job, const Samples& data, const MiniBatch& batch, const std::string& dtype,
                            int frozen_first_layer) {
  const auto [found, is_new] = job.expected.try_emplace({batch.samples.size(), dtype, frozen_first_layer});
  Expected& expected = found->second;
  if (is_new) {
    ReferenceModel reference(job.config, kSeed, layer_types_of(dtype).kept);
    if (frozen_first_layer > 0) reference.cut_tie();
    expected.loss = reference.loss_and_gradients(job.whole(data, batch, dtype), frozen_first_layer);
    double squares = 0;
    for (int layer = 0; layer < 8; ++layer) {
      expected.gradients.push_back(reference.gradient(layer));
      if (layer >= frozen_first_layer) squares += std::pow(l2(expected.gradients.back()), 2);
    }
    expected.norm = std::sqrt(squares);
  }
  return expected;
}

void check_gradients(Job& job, int p, int d, int m, const std::string& schedule, int frozen_first_layer,
                     const std::string& dtype, int num_samples, const Recompute& recompute = std::nullopt) {
  const std::string what =
      name_of(job.config) + fmt::format(": p={} d={} m={} {} first trainable layer {} {} {} samples, recompute {}", p,
                                        d, m, schedule, frozen_first_layer, dtype, num_samples,
                                        recompute ? to_string(*recompute) : "nothing");
  const std::unique_ptr<Samples> samples = small_samples(job.config, num_samples);
  const Samples& data = *samples;
  std::vector<int> order(num_samples);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(data, order, num_samples, 0);

  RankSession session = job.session(data, "sgd", dtype);
  Phase phase = small_phase(p, d, m, schedule, frozen_first_layer);
  phase.recompute = recompute;
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, ParkedMoments>&) {
    randomise_layer(job.config, layer, kSeed, state);
  });
  Trace trace;
  const IterationResult result =
      session.runner()->run_iteration(batch, nullptr, 0, {.optimizer = "sgd"}, 0, trace, /*apply_update=*/false);

  const Expected& reference = expected_of(job, data, batch, dtype, frozen_first_layer);
  const auto [relative, overall] = bounds_of(dtype);
  for (auto& [layer, state] : session.layers()) {
    CHECK_RANK(state.trains() == (layer >= frozen_first_layer), what);
    if (!state.trains()) continue;
    const at::Tensor expected = reference.gradients[layer];
    std::int64_t offset = 0;
    for (const ParameterSpec& spec : parameters_of(job.config, layer)) {
      const at::Tensor g0 = expected.narrow(0, offset, spec.count()),
                       g = state.gradients.narrow(0, offset, spec.count());
      const double error = l2(g - g0);
      CHECK_RANK(error <= relative * l2(g0) + overall * reference.norm,
                 fmt::format("{}: layer {} {}: error {}, gradient {}, all {}", what, layer, spec.names[0], error,
                             l2(g0), reference.norm));
      offset += spec.count();
    }
  }
  const double loss = agreed_loss(*job.communicator, result);
  CHECK_RANK(std::abs(loss - reference.loss) <= relative * 10,
             fmt::format("{}: loss {} instead of {}", what, loss, reference.loss));
}

void gradients_equal_single_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const std::string dtype : {"float32", "float64"}) {
    for (const std::string schedule : {"GPipe", "1F1B"}) {
      for (const int first_trainable : {0, 1, 3, 7}) {  // nothing, the embedding, one block, all blocks frozen
        const bool every_m = dtype == "float64";
        for (const int m : every_m ? std::vector<int>{1, 2, 3, 5} : std::vector<int>{2, 5}) {  // also m < p
          // 11 samples: no m x d divides them; 4 with 5 micro-batches and 2 replicas leaves micro-batches empty.
          check_gradients(job, p, d, m, schedule, first_trainable, dtype, 11);
          if (m == 5) check_gradients(job, p, d, m, schedule, first_trainable, dtype, 4);
        }
      }
    }
  }
}

const RegisterRankTest recomputed("recomputed", [](const RankEnvironment& self) {
  Job job(self);
  for (const RecomputeMode mode : kRecomputeModes)
    for (const int first_trainable : {0, 1, 3, 7})
      for (const std::string schedule : {"GPipe", "1F1B"})
        check_gradients(job, 2, 1, 3, schedule, first_trainable, "float64", 11, mode);
});
TEST(Exactness, GradientsWithRecomputingEqualOneProcess) { EXPECT_TRUE(passes_on_ranks("recomputed", 2)); }

#define GRADIENTS(P, D)                                                                                         \
  const RegisterRankTest gradients_##P##_##D(                                                                   \
      "gradients " #P " " #D, [](const RankEnvironment& self) { gradients_equal_single_process(self, P, D); }); \
  TEST(Exactness, GradientsOf##P##StagesX##D##ReplicasEqualOneProcess) {                                        \
    EXPECT_TRUE(passes_on_ranks("gradients " #P " " #D, P* D));                                                 \
  }
GRADIENTS(1, 1)
GRADIENTS(2, 1)
GRADIENTS(3, 1)
GRADIENTS(4, 1)
GRADIENTS(1, 2)
GRADIENTS(2, 2)
GRADIENTS(3, 2)
GRADIENTS(4, 2)

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
};

/// Trains through the segments and beside it in one process; both must stay equal. 4 -> 2 -> 1 stages, frozen layers on
/// stages of the middle, batches that nothing divides, one rank idle at first in a world of 4 for p x d = 3.
void elastic_run_equals_single_process(Job& job, const std::string& optimizer, const std::vector<Segment>& segments) {
  const std::string dtype = "float64";
  const std::unique_ptr<Samples> samples = small_samples(job.config, 13);
  const Samples& data = *samples;
  std::vector<int> order(13);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(data, order, 13, 0);
  const MicroBatch whole = job.whole(data, batch, dtype);

  RankSession session = job.session(data, optimizer, dtype);
  ReferenceModel reference(job.config, kSeed, layer_types_of(dtype).kept);
  int step = 0;
  for (const Segment& segment : segments) {
    Phase phase = small_phase(segment.p, segment.d, segment.m, "1F1B", segment.first_trainable);
    phase.from_step = step;
    if (step == 0) {
      session.start(phase, step, [&](int layer, LayerState& state, std::map<int, ParkedMoments>&) {
        randomise_layer(job.config, layer, kSeed, state);
      });
    } else {
      const std::vector<double> before = checksums(job, session);
      session.enter(phase);
      CHECK_RANK(before == checksums(job, session), "a transformation changes no weight");  // head included; exact
    }
    if (segment.first_trainable > 0) reference.cut_tie();
    for (int i = 0; i < segment.steps; ++i, ++step) {
      const UpdateRule rule{.optimizer = optimizer, .learning_rate = 0.01, .weight_decay = 0.1, .step = step + 1};
      Trace trace;
      IterationResult result;
      if (session.runner())
        result = session.runner()->run_iteration(batch, nullptr, step, rule, /*gradient_clip=*/1.0, trace);
      const double loss = agreed_loss(*job.communicator, result);
      const double expected = reference.loss_and_gradients(whole, segment.first_trainable);
      CHECK_RANK(std::abs(loss - expected) <= 1e-9 * (1 + std::abs(expected)),
                 fmt::format("step {}: loss {} instead of {}", step, loss, expected));
      reference.step(optimizer, 0.01, 0.1, 1.0, segment.first_trainable);
      for (const auto& [layer, state] : session.layers()) {
        const at::Tensor w0 = reference.weights(layer);
        // AdamW divides by the root of tiny second moments (the key bias has gradient 0): compared by loss, SGD by
        // weights.
        if (optimizer == "sgd") {
          CHECK_RANK(l2(state.weights - w0) <= 1e-10 * l2(w0),
                     fmt::format("step {}: weights of layer {}", step, layer));
        }
      }
    }
    // Replicas hold the same bits: a sum over d equal values is exactly d times one of them, for d = 1, 2, 4.
    std::vector<double> sums(job.model.layers.size(), 0.0), own = sums;
    for (const auto& [layer, state] : session.layers()) own[layer] = sums[layer] = state.weights.sum().item<double>();
    sums = job.communicator->sum(sums);
    for (const auto& [layer, state] : session.layers()) {
      CHECK_RANK(segment.d == 3 || sums[layer] == segment.d * own[layer],
                 fmt::format("replicas differ in layer {}", layer));
    }
  }
  // Moments of what froze are parked on a rank that trained it, none lost.
  if (optimizer == "adamw") {
    std::vector<double> parked(job.model.layers.size(), 0.0);
    for (const auto& [layer, moments] : session.parked()) parked[layer] = moments.first_moment.norm().item<double>();
    parked = job.communicator->sum(parked);
    for (int layer = 0; layer < segments.back().first_trainable; ++layer)
      CHECK_RANK(parked[layer] > 0, fmt::format("moments of layer {}", layer));
  }
}

void elastic_run_equals_single_process(const RankEnvironment& self, const std::string& optimizer,
                                       const std::vector<Segment>& segments) {
  Job job(self);
  elastic_run_equals_single_process(job, optimizer, segments);
}

const std::vector<Segment> kFourTwoOne{
    {4, 1, 3, 0, 2}, {4, 1, 2, 3, 2}, {2, 2, 2, 3, 2}, {1, 4, 1, 5, 2}, {1, 4, 2, 7, 1}};
const std::vector<Segment> kWithIdleRanks{{3, 1, 2, 0, 2}, {2, 1, 2, 1, 1}, {1, 3, 1, 3, 2}, {2, 2, 1, 5, 1}};

const RegisterRankTest elastic_sgd("elastic sgd", [](const RankEnvironment& self) {
  elastic_run_equals_single_process(self, "sgd", kFourTwoOne);
});
const RegisterRankTest elastic_adamw("elastic adamw", [](const RankEnvironment& self) {
  elastic_run_equals_single_process(self, "adamw", kFourTwoOne);
});
const RegisterRankTest elastic_idle("elastic idle", [](const RankEnvironment& self) {
  elastic_run_equals_single_process(self, "sgd", kWithIdleRanks);
});

TEST(Exactness, SgdRunOf4To2To1StagesEqualsOneProcess) { EXPECT_TRUE(passes_on_ranks("elastic sgd", 4)); }
TEST(Exactness, AdamWRunOf4To2To1StagesEqualsOneProcess) { EXPECT_TRUE(passes_on_ranks("elastic adamw", 4)); }
TEST(Exactness, RunWithRanksThatAreIdleForAWhileEqualsOneProcess) { EXPECT_TRUE(passes_on_ranks("elastic idle", 4)); }

/// Every family with each of its heads: pipelines, replicas, frozen layers, and a run through transformations, where
/// GPT-2's tie is cut on the way.
void every_head_equals_single_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    for (const int first_trainable : {0, 1, 3, 7})
      check_gradients(job, p, d, 2, "1F1B", first_trainable, "float64", 11);
    check_gradients(job, p, d, 3, "GPipe", 0, "float32", 11);
    check_gradients(job, p, d, 2, "1F1B", 0, "float64", 11, kRecomputeModes.back());
  }
}
#define EVERY_HEAD(P, D)                                                                                           \
  const RegisterRankTest every_head_##P##_##D(                                                                     \
      "every head " #P " " #D, [](const RankEnvironment& self) { every_head_equals_single_process(self, P, D); }); \
  TEST(Exactness, EveryHeadOn##P##StagesX##D##ReplicasEqualsOneProcess) {                                          \
    EXPECT_TRUE(passes_on_ranks("every head " #P " " #D, P* D));                                                   \
  }
EVERY_HEAD(1, 1)
EVERY_HEAD(2, 1)
EVERY_HEAD(2, 2)

const RegisterRankTest elastic_heads("elastic heads", [](const RankEnvironment& self) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    elastic_run_equals_single_process(job, "sgd", {{2, 1, 3, 0, 2}, {1, 2, 2, 0, 1}, {2, 1, 2, 3, 2}, {1, 2, 1, 5, 2}});
  }
});
TEST(Exactness, RunOfEveryHeadThroughTransformationsEqualsOneProcess) {
  EXPECT_TRUE(passes_on_ranks("elastic heads", 2));
}

/// A stage may compute for longer than ranks may take to connect (10 s).
const RegisterRankTest slow_stage("slow stage", [](const RankEnvironment& self) {
  Job job(self);
  at::Tensor one = at::full({1}, self.rank);
  if (self.rank == 0) {
    job.communicator->everyone().receive(one, 1, 0, "test").wait();
    CHECK_RANK(one.item<double>() == 1, "what rank 1 has sent");
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(11));
    job.communicator->everyone().send(one, 0, 0, "test").wait();
  }
});
TEST(Exactness, AMessageMayComeLate) { EXPECT_TRUE(passes_on_ranks("slow stage", 2)); }

/// Where one rank shares its device, as where there is one GPU for all, every rank copies what it sends to host memory,
/// and what it receives from there.
const RegisterRankTest through_host("through host", [](const RankEnvironment& self) {
  std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  if (self.rank == 1) device = shared(std::move(device));
  Job job(self, std::move(device));
  CHECK_RANK(job.communicator->talks_through_host(), "one rank shares its device");
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    check_gradients(job, 2, 2, 3, "1F1B", 0, "float64", 11);
    elastic_run_equals_single_process(job, "adamw",
                                      {{2, 2, 3, 0, 2}, {1, 4, 1, 0, 1}, {4, 1, 2, 3, 2}, {1, 2, 1, 5, 2}});
  }
});
TEST(Exactness, RunsThroughHostMemoryEqualOneProcess) { EXPECT_TRUE(passes_on_ranks("through host", 4)); }

/// What is dropped depends on the sample and the step alone: every layout has the loss and the gradients of one
/// process.
void dropout_is_the_same_everywhere(const RankEnvironment& self) {
  Job job(self);
  for (TransformerConfig config : small_configs()) {
    config.dropout = 0.3;
    job.train_now(config);
    const std::unique_ptr<Samples> samples = small_samples(config, 11);
    std::vector<int> order(11);
    std::iota(order.begin(), order.end(), 0);
    MiniBatch batch = mini_batch(*samples, order, 11, 0);
    const auto losses_of = [&](int p, int d, int m, const Recompute& recompute) {
      RankSession session = job.session(*samples, "sgd", "float64");
      Phase phase = small_phase(p, d, m, "1F1B", 3);
      phase.recompute = recompute;
      session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, ParkedMoments>&) {
        randomise_layer(config, layer, kSeed, state);
      });
      std::vector<double> losses;
      for (int step = 0; step < 3; ++step) {
        batch.dropout_seed = static_cast<std::uint64_t>(step) + 7;
        Trace trace;
        IterationResult result;
        if (session.runner())
          result = session.runner()->run_iteration(
              batch, nullptr, step, {.optimizer = "sgd", .learning_rate = 0.05, .step = step + 1}, 1.0, trace);
        losses.push_back(agreed_loss(*job.communicator, result));
      }
      return losses;
    };
    const std::vector<double> expected = losses_of(1, 1, 1, std::nullopt);
    const auto check = [&](const std::vector<double>& losses, const std::string& what) {
      for (int step = 0; step < 3; ++step)
        CHECK_RANK(std::abs(losses[step] - expected[step]) <= 1e-10 * expected[step],
                   fmt::format("{} {}: step {}", name_of(config), what, step));
    };
    check(losses_of(2, 1, 3, std::nullopt), "2 stages");
    check(losses_of(1, 2, 2, std::nullopt), "2 replicas");
    check(losses_of(2, 1, 2, kRecomputeModes.back()), "recomputed");
    CHECK_RANK(expected[0] != expected[1], "something is dropped");
  }
}
const RegisterRankTest dropout("dropout", dropout_is_the_same_everywhere);
TEST(Exactness, DropoutIsTheSameInEveryLayout) { EXPECT_TRUE(passes_on_ranks("dropout", 2)); }

/// After a transformation the next step is, to the bit, that of a run started fresh in the new layout from the same
/// weights and moments.
void transformed_equals_fresh(const RankEnvironment& self) {
  Job job(self);
  const std::unique_ptr<Samples> samples = small_samples(job.config, 9);
  const Samples& data = *samples;
  std::vector<int> order(9);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(data, order, 9, 0);
  RankSession session = job.session(data, "adamw", "float32");
  session.start(small_phase(2, 1, 3, "1F1B", 0), 0, [&](int layer, LayerState& state, std::map<int, ParkedMoments>&) {
    randomise_layer(job.config, layer, kSeed, state);
  });
  Trace trace;
  for (int step = 0; step < 3; ++step)
    session.runner()->run_iteration(batch, nullptr, step, {.learning_rate = 0.01, .step = step + 1}, 1.0, trace);
  const Phase after = small_phase(1, 2, 2, "1F1B", 3);
  session.enter(after);
  RankSession fresh = job.session(data, "adamw", "float32");
  fresh.start(after, 3, [&](int layer, LayerState& state, std::map<int, ParkedMoments>&) {
    const at::NoGradGuard no_grad;
    const LayerState& from = session.layers().at(layer);
    state.weights.copy_(from.weights);
    CHECK_RANK(state.trains() == from.trains(), "the same layers train");
    if (!state.trains()) return;
    state.first_moment.copy_(from.first_moment);
    state.second_moment.copy_(from.second_moment);
  });
  for (RankSession* one : {&session, &fresh})
    one->runner()->run_iteration(batch, nullptr, 3, {.learning_rate = 0.01, .step = 4}, 1.0, trace);
  for (const auto& [layer, state] : session.layers()) {
    CHECK_RANK(at::equal(state.weights, fresh.layers().at(layer).weights), fmt::format("layer {}", layer));
  }
}
const RegisterRankTest fresh_start("transformed equals fresh", transformed_equals_fresh);
TEST(Exactness, StepAfterTransformationEqualsAFreshStartInTheNewLayoutToTheBit) {
  EXPECT_TRUE(passes_on_ranks("transformed equals fresh", 2));
}

}  // namespace
}  // namespace frostpipe::test
