// Token slices of a causal model, packed samples of unequal lengths. Oracle: one process that knows neither stages nor
// slices.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/executor/ranks.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

void train_a_text_model(Job& job) { job.train_now(small_config(Family::gpt2, Task::causal_language_modeling)); }

struct SliceCells {
  /// Samples have 3 to 9 tokens: slices that end within a sample, that some or all samples do not reach, and none.
  std::vector<std::vector<int>> slices;
  std::vector<int> micro_batches;
  std::vector<Recompute> recompute;
  DType dtype = DType::kFloat64;
};

/// Of both schedules, with nothing and with a third frozen.
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

RANK_TEST(Slices, GradientsThroughHostMemoryEqualOneProcess, 4) {
  Job job = job_through_host(self);
  train_a_text_model(job);
  Phase phase = small_phase(2, 2, 3, "Seq1F1B", 0);
  phase.token_slices = {4, 5};
  check_gradients(job, phase, DType::kFloat64, 11);
}

}  // namespace
}  // namespace frostpipe::test
