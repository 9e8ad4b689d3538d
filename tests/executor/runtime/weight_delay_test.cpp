// PipeDream-2BW: an iteration computes with the weights from before the last update. Oracles: one process without
// stages that keeps two versions of its weights (twin_run.h, within its bounds); and another session, bitwise, which
// each test names.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/executor/ranks.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/runtime/twin_run.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

TwinPhase delayed(int p, int d, int m, int first_trainable, int steps, const Recompute& recompute = std::nullopt) {
  return {p, d, m, first_trainable, steps, "PipeDream-2BW", 1, {}, recompute};
}

/// No frozen layers, the embedding, also a block, and all layers except the head; without and with recomputation; as
/// many micro-batches as stages, and more. The 13 samples cannot be divided evenly. Oracle: twin_run.h.
void four_steps_equal_single_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const int first_trainable : {0, 1, 3, 7})
    for (const Recompute& recompute : {Recompute(), Recompute(RecomputeMode::layers)})
      for (const int m : {p, 2 * p + 1})
        elastic_run_equals_single_process(job, Optimizer::kSgd, {delayed(p, d, m, first_trainable, 4, recompute)});
  elastic_run_equals_single_process(job, Optimizer::kAdamW, {delayed(p, d, 2 * p, 0, 6)});
}
RANK_TEST(WeightDelay, FourStepsOn1StageEqualOneProcess, 1) { four_steps_equal_single_process(self, 1, 1); }
RANK_TEST(WeightDelay, FourStepsOn2StagesEqualOneProcess, 2) { four_steps_equal_single_process(self, 2, 1); }
RANK_TEST(WeightDelay, FourStepsOn4StagesEqualOneProcess, 4) { four_steps_equal_single_process(self, 4, 1); }
RANK_TEST(LongWeightDelay, FourStepsOn2StagesX2ReplicasEqualOneProcess, 4) {
  four_steps_equal_single_process(self, 2, 2);
}

/// Every head, including embeddings that are tied in both versions. Oracle: twin_run.h.
RANK_TEST(WeightDelay, FourStepsOfEveryHeadEqualOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    for (const int first_trainable : {0, 3})
      elastic_run_equals_single_process(job, Optimizer::kSgd, {delayed(2, 1, 3, first_trainable, 4)});
  }
}

/// Changes of layout, of frozen layers and of the schedule. Oracle: twin_run.h, whose process makes both versions equal
/// at each change.
RANK_TEST(WeightDelay, AChangeBeginsWithEqualVersions, 4) {
  Job job(self);
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW})
    elastic_run_equals_single_process(job, optimizer,
                                      {{2, 2, 2, 0, 2},
                                       delayed(4, 1, 5, 0, 3),
                                       delayed(2, 2, 2, 0, 3),
                                       delayed(2, 2, 2, 3, 3),
                                       {2, 1, 4, 3, 2, "ZBVZeroBubble", 2},
                                       delayed(2, 2, 3, 5, 3)});
}

void use(LayerState& state, const LayerState& from) {
  const at::NoGradGuard no_grad;
  state.weights.copy_(from.weights);
  if (!state.trains()) return;
  state.moments.first.copy_(from.moments.first);
  state.moments.second.copy_(from.moments.second);
}

struct OneRank {
  explicit OneRank(DType with_dtype) : dtype(with_dtype), data(small_samples(job.config, 9)), order(9) {
    std::iota(order.begin(), order.end(), 0);
    batch = mini_batch(*data, order, 9, 0);
  }
  RankSession session() { return job.session(*data, Optimizer::kAdamW, dtype); }
  double train(RankSession& session, int step) {
    Trace trace;
    const UpdateRule rule{.learning_rate = 0.01, .step = step + 1};
    return session.runner()->run_iteration(batch, nullptr, step, {.rule = rule, .gradient_clip = 1}, trace).loss;
  }
  void begin(RankSession& session, int num_steps) {
    session.start(small_phase(1, 1, 3, "PipeDream-2BW", 3), 0,
                  [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
                    randomise_layer(job.config, layer, kSeed, state);
                  });
    for (int step = 0; step < num_steps; ++step) train(session, step);
  }
  DType dtype;
  Job job{RankEnvironment{}};
  std::unique_ptr<Samples> data;
  std::vector<int> order;
  MiniBatch batch;
};

bool have_equal_weights(RankSession& a, RankSession& b) {
  for (const auto& [layer, state] : a.layers())
    if (!at::equal(state.weights, b.layers().at(layer).weights)) return false;
  return true;
}

/// Oracle: the session from whose layers, with both versions, the other one starts.
TEST(WeightDelay, AStartWithinThePhaseGoesOnWithBothVersions) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    OneRank rank(dtype);
    RankSession undisturbed = rank.session(), resumed = rank.session();
    rank.begin(undisturbed, 3);
    Phase phase = undisturbed.phase();
    phase.from_step = 3;
    resumed.start(phase, 3, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
      const LayerState& from = undisturbed.layers().at(layer);
      use(state, from);
      if (!state.trains()) return;
      keep_older_weights(state);
      state.older.weights.copy_(from.older.weights);
    });
    for (int step = 3; step < 6; ++step) EXPECT_EQ(rank.train(resumed, step), rank.train(undisturbed, step));
    EXPECT_TRUE(have_equal_weights(resumed, undisturbed));
  }
}

/// Oracle: the session whose phase does not end.
TEST(WeightDelay, APhaseThatChangesNeitherPipelineNorFreezingGoesOnWithBothVersions) {
  OneRank rank(DType::kFloat32);
  RankSession undisturbed = rank.session(), changed = rank.session();
  rank.begin(undisturbed, 3);
  rank.begin(changed, 3);
  Phase next = changed.phase();
  next.from_step = 3;
  changed.enter(next);
  for (int step = 3; step < 6; ++step) EXPECT_EQ(rank.train(changed, step), rank.train(undisturbed, step));
  EXPECT_TRUE(have_equal_weights(changed, undisturbed));
}

/// Oracle: the session that drains its pipeline after every iteration, so that iterations do not overlap.
RANK_TEST(WeightDelay, OverlapChangesNothing, 2) {
  Job job(self);
  const std::unique_ptr<Samples> data = small_samples(job.config, 9);
  std::vector<int> order(9);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(*data, order, 9, 0);
  const auto train = [&](RankSession& session, const std::vector<bool>& drains) {
    session.start(small_phase(2, 1, 3, "PipeDream-2BW", 0), 0,
                  [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
                    randomise_layer(job.config, layer, kSeed, state);
                  });
    for (std::size_t i = 0; i < drains.size(); ++i) {
      Trace trace;
      const int step = static_cast<int>(i);
      session.runner()->run_iteration(batch, &batch, step,
                                      {.rule = {.learning_rate = 0.01, .step = step + 1}, .gradient_clip = 1}, trace,
                                      drains[i]);
      CHECK_RANK(session.runner()->has_begun() == !drains[i], "the next iteration");
    }
  };
  RankSession flushed = job.session(*data, Optimizer::kAdamW, DType::kFloat32),
              overlapped = job.session(*data, Optimizer::kAdamW, DType::kFloat32);
  train(flushed, {true, true, true, true, true});
  train(overlapped, {false, false, true, false, true});
  for (const auto& [layer, state] : flushed.layers())
    CHECK_RANK(at::equal(state.weights, overlapped.layers().at(layer).weights), fmt::format("layer {}", layer));
}

/// After a loss only the newest weights are the same on all ranks. Oracle: the session that starts with them and their
/// moments, and has no older ones.
TEST(WeightDelay, AfterALossTheHeldLayersGoOnWithTheNewestWeights) {
  OneRank rank(DType::kFloat32);
  RankSession lost = rank.session(), recovered = rank.session(), fresh = rank.session();
  rank.begin(lost, 3);
  Phase anew = lost.phase();
  anew.from_step = 3;
  fresh.start(anew, 3, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    use(state, lost.layers().at(layer));
  });
  const Phase phase = lost.phase();
  recovered.start_with(phase, 3, *lost.release(), {});
  for (int step = 3; step < 6; ++step) EXPECT_EQ(rank.train(recovered, step), rank.train(fresh, step));
  EXPECT_TRUE(have_equal_weights(recovered, fresh));
}

/// Oracle: the session with a schedule without delay that gets only the newest weights.
TEST(WeightDelay, AnEvaluationAsksTheNewestWeights) {
  OneRank rank(DType::kFloat32);
  RankSession delayed = rank.session(), plain = rank.session();
  rank.begin(delayed, 3);
  plain.start(small_phase(1, 1, 3, "1F1B", 3), 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    use(state, delayed.layers().at(layer));
  });
  EXPECT_EQ(delayed.runner()->answers(*rank.data, rank.order, 4), plain.runner()->answers(*rank.data, rank.order, 4));
}

}  // namespace
}  // namespace frostpipe::test
