// Oracle: one process without stages (check_gradients.h).
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
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

void check_gradients(Job& job, int p, int d, int m, const std::string& schedule, int frozen_first_layer, DType dtype,
                     int num_samples, const Recompute& recompute = std::nullopt) {
  Phase phase = small_phase(p, d, m, schedule, frozen_first_layer);
  phase.recompute = recompute;
  check_gradients(job, phase, dtype, num_samples);
}

void gradients_equal_single_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const std::string schedule : {"GPipe", "1F1B"}) {
      for (const int first_trainable : {0, 1, 3, 7}) {  // nothing, the embedding, one block, all blocks frozen
        const bool every_m = dtype == DType::kFloat64;
        for (const int m : every_m ? std::vector<int>{1, 2, 3, 5} : std::vector<int>{2, 5}) {  // also m < p
          // No m x d divides 11 samples; 4 samples with 5 micro-batches and 2 replicas leave micro-batches empty.
          check_gradients(job, p, d, m, schedule, first_trainable, dtype, 11);
          if (m == 5) check_gradients(job, p, d, m, schedule, first_trainable, dtype, 4);
        }
      }
    }
  }
}

RANK_TEST(Exactness, GradientsOf1StagesX1ReplicasEqualOneProcess, 1) { gradients_equal_single_process(self, 1, 1); }
RANK_TEST(Exactness, GradientsOf2StagesX1ReplicasEqualOneProcess, 2) { gradients_equal_single_process(self, 2, 1); }
RANK_TEST(Exactness, GradientsOf4StagesX1ReplicasEqualOneProcess, 4) { gradients_equal_single_process(self, 4, 1); }
RANK_TEST(Exactness, GradientsOf1StagesX2ReplicasEqualOneProcess, 2) { gradients_equal_single_process(self, 1, 2); }
RANK_TEST(Exactness, GradientsOf2StagesX2ReplicasEqualOneProcess, 4) { gradients_equal_single_process(self, 2, 2); }
RANK_TEST(LongExactness, GradientsOf3StagesX1ReplicasEqualOneProcess, 3) { gradients_equal_single_process(self, 3, 1); }
RANK_TEST(LongExactness, GradientsOf3StagesX2ReplicasEqualOneProcess, 6) { gradients_equal_single_process(self, 3, 2); }
RANK_TEST(LongExactness, GradientsOf4StagesX2ReplicasEqualOneProcess, 8) { gradients_equal_single_process(self, 4, 2); }

/// Separate I and W on p ranks: fewer micro-batches than stages, as many, more, and (with 4 samples) empty ones. ZB-H2
/// needs 2 p - 1. The layers before 0, 3 and 5 are frozen.
void split_backward_equals_single_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const Recompute& recompute :
       {Recompute(), Recompute(RecomputeMode::attention), Recompute(RecomputeMode::stage)}) {
    for (const int first_trainable : {0, 3, 5}) {
      for (const int m : {1, p, 2 * p - 1, 2 * p + 1}) {
        check_gradients(job, p, d, m, "ZB-H1", first_trainable, DType::kFloat64, 11, recompute);
        if (m >= 2 * p - 1) check_gradients(job, p, d, m, "ZB-H2", first_trainable, DType::kFloat64, 11, recompute);
      }
      check_gradients(job, p, d, 5, "ZB-H1", first_trainable, DType::kFloat64, 4, recompute);
    }
  }
  for (const std::string schedule : {"ZB-H1", "ZB-H2"})
    check_gradients(job, p, d, 2 * p, schedule, 3, DType::kFloat32, 11);
}
RANK_TEST(Exactness, SplitBackwardsOf1StagesX1ReplicasEqualOneProcess, 1) {
  split_backward_equals_single_process(self, 1, 1);
}
RANK_TEST(Exactness, SplitBackwardsOf2StagesX1ReplicasEqualOneProcess, 2) {
  split_backward_equals_single_process(self, 2, 1);
}
RANK_TEST(Exactness, SplitBackwardsOf2StagesX2ReplicasEqualOneProcess, 4) {
  split_backward_equals_single_process(self, 2, 2);
}
RANK_TEST(Exactness, SplitBackwardsOf4StagesX1ReplicasEqualOneProcess, 4) {
  split_backward_equals_single_process(self, 4, 1);
}

/// Every head, including tied embeddings, and the same dropout as with a whole backward.
RANK_TEST(Exactness, SplitBackwardsOfEveryHeadEqualOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    for (const int first_trainable : {0, 3}) {
      check_gradients(job, 2, 1, 3, "ZB-H1", first_trainable, DType::kFloat64, 11);
      check_gradients(job, 2, 1, 4, "ZB-H2", first_trainable, DType::kFloat64, 11, RecomputeMode::layers);
    }
  }
}

RANK_TEST(Exactness, GradientsWithRecomputingEqualOneProcess, 2) {
  Job job(self);
  for (const RecomputeMode mode : kRecomputeModes)
    for (const int first_trainable : {0, 1, 3, 7})
      for (const std::string schedule : {"GPipe", "1F1B"})
        check_gradients(job, 2, 1, 3, schedule, first_trainable, DType::kFloat64, 11, mode);
}

/// Every family with each of its heads: pipelines, replicas, frozen layers.
void every_head_equals_single_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    for (const int first_trainable : {0, 1, 3, 7})
      check_gradients(job, p, d, 2, "1F1B", first_trainable, DType::kFloat64, 11);
    check_gradients(job, p, d, 3, "GPipe", 0, DType::kFloat32, 11);
    check_gradients(job, p, d, 2, "1F1B", 0, DType::kFloat64, 11, kRecomputeModes.back());
  }
}
RANK_TEST(Exactness, EveryHeadOn1StagesX1ReplicasEqualsOneProcess, 1) { every_head_equals_single_process(self, 1, 1); }
RANK_TEST(Exactness, EveryHeadOn2StagesX1ReplicasEqualsOneProcess, 2) { every_head_equals_single_process(self, 2, 1); }
RANK_TEST(Exactness, EveryHeadOn2StagesX2ReplicasEqualsOneProcess, 4) { every_head_equals_single_process(self, 2, 2); }
RANK_TEST(Exactness, EveryHeadOn4StagesX1ReplicasEqualsOneProcess, 4) { every_head_equals_single_process(self, 4, 1); }

/// If two ranks share a device, as with one GPU for all, every rank sends and receives through host memory.
RANK_TEST(Exactness, GradientsThroughHostMemoryEqualOneProcess, 4) {
  Job job = job_through_host(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    check_gradients(job, 2, 2, 3, "1F1B", 0, DType::kFloat64, 11);
  }
}

/// Dropout depends only on the sample and the step, so every layout has the loss and the gradients of one process.
RANK_TEST(DropoutInLayouts, EqualsOneProcess, 2) {
  Job job(self);
  for (TransformerConfig config : small_configs()) {
    config.dropout = 0.3;
    job.train_now(config);
    const std::unique_ptr<Samples> samples = small_samples(config, 11);
    std::vector<int> order(11);
    std::iota(order.begin(), order.end(), 0);
    MiniBatch batch = mini_batch(*samples, order, 11, 0);
    const auto losses_of = [&](const Phase& phase) {
      RankSession session = job.session(*samples, Optimizer::kSgd, DType::kFloat64);
      session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
        randomise_layer(config, layer, kSeed, state);
      });
      std::vector<double> losses;
      for (int step = 0; step < 3; ++step) {
        batch.dropout_seed = static_cast<std::uint64_t>(step) + 7;
        Trace trace;
        IterationResult result;
        if (session.runner())
          result = session.runner()->run_iteration(
              batch, nullptr, step,
              {.rule = {.optimizer = Optimizer::kSgd, .learning_rate = 0.05, .step = step + 1}, .gradient_clip = 1},
              trace);
        losses.push_back(agreed_loss(*job.communicator, result));
      }
      return losses;
    };
    const std::vector<double> expected = losses_of(small_phase(1, 1, 1, "1F1B", 3));
    const auto check = [&](const std::vector<double>& losses, const std::string& what) {
      for (int step = 0; step < 3; ++step)
        CHECK_RANK(std::abs(losses[step] - expected[step]) <= 1e-10 * expected[step],
                   fmt::format("{} {}: step {}", name_of(config), what, step));
    };
    check(losses_of(small_phase(2, 1, 3, "1F1B", 3)), "2 stages");
    check(losses_of(small_phase(1, 2, 2, "1F1B", 3)), "2 replicas");
    Phase phase = small_phase(2, 1, 2, "1F1B", 3);
    phase.recompute = kRecomputeModes.back();
    check(losses_of(phase), "recomputed");
    phase.schedule = "ZB-H1";
    check(losses_of(phase), "recomputed in I");
    phase = small_phase(1, 1, 2, "1F1B", 3);
    phase.layout.tensor_parallel_size = 2;
    check(losses_of(phase), "2 tensor ranks");
    if (config.task == Task::causal_language_modeling) {
      phase.schedule = "TeraPipe";
      phase.token_slices = {2, 3, 4};
      check(losses_of(phase), "token slices on 2 tensor ranks");
      phase.layout.sequence_parallel = true;
      check(losses_of(phase), "split token slices");
    }
    phase = small_phase(1, 1, 2, "1F1B", 3);
    phase.layout.tensor_parallel_size = 2;
    phase.layout.sequence_parallel = true;
    check(losses_of(phase), "split tokens");
    CHECK_RANK(expected[0] != expected[1], "something is dropped");
  }
}

}  // namespace
}  // namespace frostpipe::test
