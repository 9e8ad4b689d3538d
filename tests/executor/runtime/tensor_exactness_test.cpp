// Layers split over tensor ranks. Oracle: one process without stages and tensor ranks (check_gradients.h).
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "executor/models/shards.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/reference_model.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/runtime/twin_run.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

struct Ranks {
  int p = 1, d = 1, t = 2;
  bool sequence_parallel = false;
};

Phase tensor_phase(const Ranks& ranks, int m, const std::string& schedule, int first_trainable_layer) {
  Phase phase = small_phase(ranks.p, ranks.d, m, schedule, first_trainable_layer);
  phase.layout.tensor_parallel_size = ranks.t;
  phase.layout.sequence_parallel = ranks.sequence_parallel;
  return phase;
}

/// Every head of every family, with a vocabulary that is split unequally; a vocabulary all of whose used tokens are in
/// the first rank's part; and an untied head.
std::vector<TransformerConfig> configs() {
  std::vector<TransformerConfig> configs = small_configs();
  for (TransformerConfig& config : configs) config.vocab_size = 41;
  TransformerConfig sparse = small_config(), untied = small_config(Family::gpt2, Task::causal_language_modeling);
  sparse.vocab_size = 100;
  untied.vocab_size = 41;
  untied.ties_embeddings = false;
  configs.insert(configs.end(), {sparse, untied});
  return configs;
}

/// All of these models, with no frozen layers, with the embedding and one block, and with all blocks frozen; 4 samples
/// leave micro-batches empty.
void gradients_equal_single_process(const RankEnvironment& self, const Ranks& ranks) {
  Job job(self);
  for (TransformerConfig config : configs()) {
    if (ranks.t > 2) set_heads(config, ranks.t);
    job.train_now(config);
    for (const int first_trainable : {0, 3, 7})
      for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
        check_gradients(job, tensor_phase(ranks, 3, "1F1B", first_trainable), dtype, 11);
        check_gradients(job, tensor_phase(ranks, 5, "1F1B", first_trainable), dtype, 4);
      }
    for (const RecomputeMode mode : {RecomputeMode::attention, RecomputeMode::stage}) {
      Phase phase = tensor_phase(ranks, 3, "ZB-H1", 0);
      phase.recompute = mode;
      check_gradients(job, phase, DType::kFloat64, 11);
    }
    if (config.task == Task::causal_language_modeling) {
      Phase phase = tensor_phase(ranks, 3, "Seq1F1B", 0);
      phase.token_slices = {2, 3, 1, 3};
      check_gradients(job, phase, DType::kFloat64, 11);
    }
  }
}

RANK_TEST(TensorExactness, GradientsOf1StagesX1ReplicasEqualOneProcess, 2) { gradients_equal_single_process(self, {}); }
RANK_TEST(TensorExactness, GradientsOf2StagesX1ReplicasEqualOneProcess, 4) {
  gradients_equal_single_process(self, {.p = 2});
}
RANK_TEST(TensorExactness, GradientsOf1StagesX2ReplicasEqualOneProcess, 4) {
  gradients_equal_single_process(self, {.d = 2});
}
/// Without frozen layers and with one block frozen, recomputation, a split backward, token slices.
RANK_TEST(TensorExactness, GradientsOfSplitTokensEqualOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : configs()) {
    job.train_now(config);
    Phase phase = tensor_phase({.sequence_parallel = true}, 3, "ZB-H1", 3);
    check_gradients(job, phase, DType::kFloat32, 11);
    phase.first_trainable_layer = 0;
    phase.recompute = RecomputeMode::layers;
    check_gradients(job, phase, DType::kFloat64, 11);
    if (config.task != Task::causal_language_modeling) continue;
    phase.schedule = "Seq1F1B";
    phase.token_slices = {2, 3, 1, 3};
    check_gradients(job, phase, DType::kFloat64, 11);
  }
}
/// Stages on different nodes, so that each tensor rank sends a part of each message: with empty micro-batches, frozen
/// layers, a split backward, several stages per rank and token slices.
RANK_TEST(TensorExactness, GradientsOfScatteredMessagesEqualOneProcess, 4) {
  Job job(self);
  const Ranks ranks{.p = 2};
  std::vector<int> nodes;
  for (int rank = 0; rank < 4; ++rank)
    nodes.push_back(find_coordinate(tensor_phase(ranks, 3, "1F1B", 0).layout, rank)->pipeline_rank);
  job.communicator->set_nodes(nodes);
  for (const TransformerConfig& config :
       {small_config(), small_config(Family::vit, Task::image_classification), small_decoder()}) {
    job.train_now(config);
    check_gradients(job, tensor_phase(ranks, 5, "1F1B", 0), DType::kFloat64, 4);
    check_gradients(job, tensor_phase(ranks, 3, "GPipe", 3), DType::kFloat32, 11);
    check_gradients(job, tensor_phase(ranks, 3, "ZB-H1", 0), DType::kFloat64, 11);
    if (config.task != Task::causal_language_modeling) continue;
    Phase phase = tensor_phase(ranks, 3, "Seq1F1B", 0);
    phase.token_slices = {2, 3, 1, 3};
    check_gradients(job, phase, DType::kFloat64, 11);
  }
}
/// Samples of 3 tokens, which leave a rank without tokens of a micro-batch.
RANK_TEST(TensorExactness, GradientsOfFewerTokensThanTensorRanksEqualOneProcess, 4) {
  Job job(self);
  for (TransformerConfig config : small_configs()) {
    set_heads(config, 4);
    job.train_now(config);
    check_gradients(job, tensor_phase({.t = 4, .sequence_parallel = true}, 5, "1F1B", 0), DType::kFloat64, 4);
  }
}
RANK_TEST(LongTensorExactness, GradientsOfSplitTokensOf1StagesEqualOneProcess, 2) {
  gradients_equal_single_process(self, {.sequence_parallel = true});
}
RANK_TEST(LongTensorExactness, GradientsOfSplitTokensOf2StagesEqualOneProcess, 4) {
  gradients_equal_single_process(self, {.p = 2, .sequence_parallel = true});
}
RANK_TEST(LongTensorExactness, GradientsOfSplitTokensOf2StagesX2ReplicasEqualOneProcess, 8) {
  gradients_equal_single_process(self, {.p = 2, .d = 2, .sequence_parallel = true});
}
RANK_TEST(LongTensorExactness, GradientsOfTokensSplitBy4EqualOneProcess, 4) {
  gradients_equal_single_process(self, {.t = 4, .sequence_parallel = true});
}
RANK_TEST(LongTensorExactness, GradientsOf2StagesOfTokensSplitBy4EqualOneProcess, 8) {
  gradients_equal_single_process(self, {.p = 2, .t = 4, .sequence_parallel = true});
}
RANK_TEST(LongTensorExactness, GradientsOf2StagesX2ReplicasEqualOneProcess, 8) {
  gradients_equal_single_process(self, {.p = 2, .d = 2});
}
RANK_TEST(LongTensorExactness, GradientsOf4TensorRanksEqualOneProcess, 4) {
  gradients_equal_single_process(self, {.t = 4});
}
RANK_TEST(LongTensorExactness, GradientsOf2StagesX4TensorRanksEqualOneProcess, 8) {
  gradients_equal_single_process(self, {.p = 2, .t = 4});
}
RANK_TEST(LongTensorExactness, GradientsOf2ReplicasX4TensorRanksEqualOneProcess, 8) {
  gradients_equal_single_process(self, {.d = 2, .t = 4});
}

std::string bytes_of(const at::Tensor& values) {
  const at::Tensor host = values.contiguous();
  return {static_cast<const char*>(host.data_ptr()), host.nbytes()};
}

/// Three updates, clipped to a norm that the gradients exceed: every value must count once in the norm. Oracle: SGD of
/// the reference model, weights to 1e-10. Parameters that tensor ranks do not split stay bitwise equal on both.
void clipped_steps_equal_single_process(const RankEnvironment& self, const Ranks& ranks, const std::string& schedule) {
  Job job(self);
  const int num_samples = 11, steps = 3;
  for (const TransformerConfig& config : configs()) {
    job.train_now(config);
    const std::string what = name_of(config);
    const std::unique_ptr<Samples> data = small_samples(config, num_samples);
    std::vector<int> order(num_samples);
    std::iota(order.begin(), order.end(), 0);
    const MiniBatch batch = mini_batch(*data, order, num_samples, 0);
    RankSession session = job.session(*data, Optimizer::kSgd, DType::kFloat64);
    const Phase phase = tensor_phase(ranks, 3, schedule, 0);
    session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
      randomise_layer(config, layer, kSeed, state);
    });
    ReferenceModel reference(config, kSeed, at::kDouble);
    if (weight_delay(phase) > 0) reference.delay_updates();
    for (int step = 0; step < steps; ++step) {
      reference.loss_and_gradients(job.whole(*data, batch, DType::kFloat64), 0);
      reference.step(Optimizer::kSgd, /*learning_rate=*/0.5, /*weight_decay=*/0, /*clip=*/0.1, 0);
      Trace trace;
      const UpdateRule rule{.optimizer = Optimizer::kSgd, .learning_rate = 0.5, .step = step + 1};
      session.runner()->run_iteration(batch, step + 1 < steps ? &batch : nullptr, step,
                                      {.rule = rule, .gradient_clip = 0.1}, trace, /*drains=*/step + 1 == steps);
    }
    std::string same;
    for (const auto& [layer, state] : session.layers()) {
      const std::vector<ParameterSpec> whole = parameters_of(config, layer);
      const at::Tensor expected = taken(whole, reference.weights(layer), {}, {.slice = state.slice});
      CHECK_RANK(l2(state.weights.to(at::kCPU) - expected) <= 1e-10 * l2(expected),
                 what + ", layer " + std::to_string(layer));
      for (std::size_t i = 0; i < whole.size(); ++i)
        if (whole[i].share == ParameterSpec::Share::whole)
          same += bytes_of(state.parameters[i].value.detach().to(at::kCPU));
    }
    const std::vector<std::string> of_ranks = job.communicator->gather(same);
    CHECK_RANK(of_ranks[self.rank] == of_ranks[self.rank ^ 1], what);
  }
}

RANK_TEST(TensorExactness, ClippedStepsOf1StagesEqualOneProcess, 2) {
  clipped_steps_equal_single_process(self, {}, "1F1B");
}
RANK_TEST(TensorExactness, ClippedStepsOf2StagesEqualOneProcess, 4) {
  clipped_steps_equal_single_process(self, {.p = 2}, "1F1B");
}
RANK_TEST(TensorExactness, ClippedStepsOfSplitTokensOf2StagesEqualOneProcess, 4) {
  clipped_steps_equal_single_process(self, {.p = 2, .sequence_parallel = true}, "1F1B");
}
RANK_TEST(TensorExactness, DelayedStepsOf2StagesEqualOneProcess, 4) {
  clipped_steps_equal_single_process(self, {.p = 2}, "PipeDream-2BW");
}

/// Another number of tensor ranks in each phase: a rank keeps a part of its part, gets the rest or all of it, or is
/// idle for a while; heads are not divided evenly over 3 tensor ranks. Layers that froze under 2 tensor ranks move to
/// 3. Oracle: twin_run.h, and a change of phase leaves every layer bitwise equal.
const std::vector<TwinPhase> kOneTwoThree{
    {.p = 1, .d = 2, .m = 2, .first_trainable = 0, .steps = 2, .t = 2},
    {.p = 4, .d = 1, .m = 3, .first_trainable = 0, .steps = 1},
    {.p = 2, .d = 1, .m = 3, .first_trainable = 1, .steps = 2, .t = 2, .sequence_parallel = true},
    {.p = 1, .d = 1, .m = 2, .first_trainable = 3, .steps = 2, .t = 3},
    {.p = 2, .d = 2, .m = 1, .first_trainable = 5, .steps = 1},
    {.p = 1, .d = 1, .m = 2, .first_trainable = 5, .steps = 1, .t = 4, .sequence_parallel = true}};

void run_through_numbers_of_tensor_ranks(const RankEnvironment& self, Optimizer optimizer) {
  Job job(self);
  TransformerConfig config = small_config();
  config.num_attention_heads = 4;
  job.train_now(config);
  elastic_run_equals_single_process(job, optimizer, kOneTwoThree);
}
RANK_TEST(TensorExactness, SgdRunThroughNumbersOfTensorRanksEqualsOneProcess, 4) {
  run_through_numbers_of_tensor_ranks(self, Optimizer::kSgd);
}
RANK_TEST(TensorExactness, AdamWRunThroughNumbersOfTensorRanksEqualsOneProcess, 4) {
  run_through_numbers_of_tensor_ranks(self, Optimizer::kAdamW);
}

/// Oracle: twin_run.h.
RANK_TEST(TensorExactness, RunOfEveryHeadThroughNumbersOfTensorRanksEqualsOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    elastic_run_equals_single_process(job, Optimizer::kSgd,
                                      {{.p = 1, .d = 1, .m = 2, .first_trainable = 0, .steps = 2, .t = 2},
                                       {.p = 2, .d = 1, .m = 3, .first_trainable = 0, .steps = 1},
                                       {.p = 1, .d = 1, .m = 3, .first_trainable = 3, .steps = 2, .t = 2}});
  }
}

/// PipeDream-2BW, whose two versions are equal when the number of tensor ranks changes. Oracle: twin_run.h.
RANK_TEST(TensorExactness, DelayedUpdatesEqualOneProcess, 2) {
  Job job(self);
  elastic_run_equals_single_process(
      job, Optimizer::kSgd,
      {{.p = 1, .d = 1, .m = 3, .first_trainable = 0, .steps = 3, .schedule = "PipeDream-2BW", .t = 2},
       {.p = 2, .d = 1, .m = 3, .first_trainable = 0, .steps = 2, .schedule = "PipeDream-2BW"},
       {.p = 1, .d = 1, .m = 2, .first_trainable = 3, .steps = 2, .schedule = "PipeDream-2BW", .t = 2}});
}

}  // namespace
}  // namespace frostpipe::test
