// Token slices of a causal model, with packed samples of unequal lengths. Oracle: one process without stages and
// slices.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/schedule.h"
#include "plan/schedule_rows.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

void train_a_text_model(Job& job) { job.train_now(small_config(Family::gpt2, Task::causal_language_modeling)); }

struct SliceCells {
  /// Samples have 3 to 9 tokens: slices end within a sample, or some or all samples do not reach them, or there are
  /// none.
  std::vector<std::vector<int>> slices;
  std::vector<int> micro_batches;
  std::vector<Recompute> recompute;
  DType dtype = DType::kFloat64;
};

/// Both schedules, with no frozen layers and with a third frozen.
void check_slices(Job& job, int p, int d, const SliceCells& cells) {
  for (const std::string schedule : {"TeraPipe", "Seq1F1B"}) {
    for (const std::vector<int>& slices : cells.slices) {
      for (const int m : cells.micro_batches) {
        for (const int first_trainable : {0, 3}) {
          for (const Recompute& recompute : cells.recompute) {
            Phase phase = small_phase(p, d, m, schedule, first_trainable);
            phase.token_slices = slices;
            phase.recompute = recompute;
            check_gradients(job, phase, cells.dtype, 11);
            if (d * m > 4) check_gradients(job, phase, cells.dtype, 4);  // with empty micro-batches
          }
        }
      }
    }
  }
}

void some_slices_equal_one_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  train_a_text_model(job);
  check_slices(job, p, d, {{{2, 3, 1, 3}}, {1, p + 1}, {Recompute(), RecomputeMode::stage}});
}
RANK_TEST(Slices, GradientsOn1StageEqualOneProcess, 1) { some_slices_equal_one_process(self, 1, 1); }
RANK_TEST(Slices, GradientsOn2StagesEqualOneProcess, 2) { some_slices_equal_one_process(self, 2, 1); }
RANK_TEST(Slices, GradientsOn4StagesEqualOneProcess, 4) { some_slices_equal_one_process(self, 4, 1); }
RANK_TEST(Slices, GradientsOn2StagesWith2ReplicasEqualOneProcess, 4) { some_slices_equal_one_process(self, 2, 2); }

/// Rotary positions, windows, soft caps, grouped queries and a parallel residual in slices.
RANK_TEST(Slices, GradientsOfEveryKindOfDecoderEqualOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : {small_llama(), small_decoder(), small_neox()}) {
    job.train_now(config);
    check_slices(job, 2, 1, {{{2, 3, 1, 3}}, {3}, {Recompute(), RecomputeMode::attention}});
  }
}

/// The schedule with every backward split: I in place of B, and all W at the end.
Schedule split(Schedule schedule) {
  for (std::vector<Action>& list : schedule.body) {
    std::vector<Action> later;
    for (Action& action : list) {
      if (action.kind != ActionKind::backward) continue;
      action.kind = ActionKind::weight_gradient;
      later.push_back(action);
      action.kind = ActionKind::input_gradient;
    }
    list.insert(list.end(), later.begin(), later.end());
  }
  return schedule;
}

/// Two stages per rank: the forwards of all slices of all stages, then their backwards in the opposite order.
Schedule all_forwards_first(int p, int m, int slices) {
  Schedule schedule{.name = "all", .num_micro_batches = m, .num_slices = slices};
  for (int stage = 0; stage < 2 * p; ++stage) schedule.pipeline_rank_of_stage.push_back(stage % p);
  for (int rank = 0; rank < p; ++rank) {
    std::vector<Action> list;
    for (int stage = rank; stage < 2 * p; stage += p)
      for (int unit = 0; unit < m * slices; ++unit)
        list.push_back({.kind = ActionKind::forward,
                        .stage = stage,
                        .micro_batch = OptionalIndex(unit / slices),
                        .slice = OptionalIndex(unit % slices)});
    for (std::size_t i = list.size(); i-- > 0;) {
      Action backward = list[i];
      backward.kind = ActionKind::backward;
      list.push_back(backward);
    }
    schedule.body.push_back(std::move(list));
  }
  return schedule;
}

/// Lists that no builder makes.
void own_lists_equal_one_process(const RankEnvironment& self, int p) {
  Job job(self);
  train_a_text_model(job);
  const Schedule seq =
      build_schedule("Seq1F1B", {.pipeline_parallel_size = p, .num_micro_batches = p + 1, .token_slices = 3});
  for (const Schedule& list : {split(seq), all_forwards_first(p, 2, 3), split(all_forwards_first(p, 2, 3))}) {
    for (const int first_trainable_layer : {0, 3}) {
      Phase phase = small_phase(p, 1, list.num_micro_batches, "", first_trainable_layer);
      const int stages = num_stages(list);
      phase.partition.clear();
      for (int stage = 0; stage < stages; ++stage)
        phase.partition.push_back({8 * stage / stages, 8 * (stage + 1) / stages});
      phase.token_slices = {2, 3, 4};
      set_schedule_rows(phase, "mine.csv", rows_of(to_csv(list)), "a test");
      check_gradients(job, phase, DType::kFloat64, 11);
    }
  }
}
RANK_TEST(Slices, GradientsByOwnListsOn2RanksEqualOneProcess, 2) { own_lists_equal_one_process(self, 2); }
RANK_TEST(Slices, GradientsByOwnListsOn4RanksEqualOneProcess, 4) { own_lists_equal_one_process(self, 4); }

void slice_grid_equals_one_process(const RankEnvironment& self, int p, int d) {
  Job job(self);
  train_a_text_model(job);
  const std::vector<std::vector<int>> slices{{}, {9}, {4, 5}, {2, 3, 1, 3}, {1, 8}, {3, 6, 4}};
  const std::vector<Recompute> recompute{Recompute(), RecomputeMode::attention, RecomputeMode::layers,
                                         RecomputeMode::stage};
  check_slices(job, p, d, {slices, {1, p, p + 1, 2 * p}, recompute});
  check_slices(job, p, d, {slices, {p + 1}, {Recompute()}, DType::kFloat32});
}
RANK_TEST(LongSlices, GridOn1RankEqualsOneProcess, 1) { slice_grid_equals_one_process(self, 1, 1); }
RANK_TEST(LongSlices, GridOn2RanksEqualsOneProcess, 2) { slice_grid_equals_one_process(self, 2, 1); }
RANK_TEST(LongSlices, GridOn4RanksEqualsOneProcess, 4) { slice_grid_equals_one_process(self, 4, 1); }
RANK_TEST(LongSlices, GridOn2RanksWith2ReplicasEqualsOneProcess, 4) { slice_grid_equals_one_process(self, 2, 2); }

RANK_TEST(Slices, NothingOfAnIterationIsLeft, 2) {
  Job job(self);
  train_a_text_model(job);
  for (const std::string schedule : {"TeraPipe", "Seq1F1B"}) {
    for (const int first_trainable : {0, 3}) {
      Phase phase = small_phase(2, 1, 3, schedule, first_trainable);
      phase.token_slices = {2, 3, 1, 3};
      check_nothing_is_left(job, phase);
      phase.recompute = RecomputeMode::stage;
      check_nothing_is_left(job, phase);
    }
  }
}

RANK_TEST(Slices, GradientsThroughHostMemoryEqualOneProcess, 4) {
  Job job = job_through_host(self);
  train_a_text_model(job);
  Phase phase = small_phase(2, 2, 3, "Seq1F1B", 0);
  phase.token_slices = {4, 5};
  check_gradients(job, phase, DType::kFloat64, 11);
}

}  // namespace
}  // namespace frostpipe::test
