// Every schedule with several stages per rank, and lists that no builder makes. Oracle: one process without stages.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/schedule_rows.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "tests/executor/ranks.h"
#include "tests/executor/runtime/check_gradients.h"
#include "tests/executor/runtime/job.h"
#include "tests/executor/small_model.h"
#include "tests/support/random_schedules.h"

namespace frostpipe::test {
namespace {

bool is_possible(const Phase& phase) {
  try {
    require_shape(phase.schedule, shape_of(phase));
    return true;
  } catch (const InvalidInput&) {
    return false;
  }
}

/// The numbers of stages per rank of a schedule that the eight layers of the small model allow.
std::vector<int> virtual_stages_of(const std::string& schedule, int p) {
  const ScheduleTraits traits = schedule_traits(schedule);
  std::vector<int> possible;
  for (int v = traits.least_virtual_stages; v <= std::min(traits.max_virtual_stages, 8 / p); ++v) possible.push_back(v);
  return possible;
}

struct Cells {
  std::vector<std::string> schedules;
  std::vector<int> first_trainable_layers;
  std::vector<Recompute> recompute;
  std::vector<int> num_micro_batches;
  DType dtype = DType::kFloat64;
};

/// Checks the gradients of every cell that is possible; with 4 samples, some micro-batches are empty.
void check_cells(Job& job, int p, int d, const Cells& cells) {
  for (const std::string& schedule : cells.schedules) {
    for (const int v : virtual_stages_of(schedule, p)) {
      for (const int m : cells.num_micro_batches) {
        for (const int first_trainable : cells.first_trainable_layers) {
          for (const Recompute& recompute : cells.recompute) {
            Phase phase = small_phase(p, d, m, schedule, first_trainable, v);
            phase.recompute = recompute;
            if (!is_possible(phase)) continue;
            check_gradients(job, phase, cells.dtype, 11);
            if (m > p) check_gradients(job, phase, cells.dtype, 4);
          }
        }
      }
    }
  }
}

/// Fewer micro-batches than pipeline ranks, as many, and a number that is not a multiple of them.
void one_cell_of_each_schedule(const RankEnvironment& self, int p, int d) {
  Job job(self);
  std::vector<std::string> several;
  for (const std::string& name : schedule_names())
    if (schedule_traits(name).max_virtual_stages > 1) several.push_back(name);
  check_cells(job, p, d, {several, {0, 3}, {Recompute()}, {1, p, 2 * p + 1}});
}
RANK_TEST(Schedules, GradientsOnOneRankEqualOneProcess, 1) { one_cell_of_each_schedule(self, 1, 1); }
RANK_TEST(Schedules, GradientsOnTwoRanksEqualOneProcess, 2) { one_cell_of_each_schedule(self, 2, 1); }
RANK_TEST(Schedules, GradientsOnTwoRanksWithReplicasEqualOneProcess, 4) { one_cell_of_each_schedule(self, 2, 2); }
RANK_TEST(Schedules, GradientsOnFourRanksEqualOneProcess, 4) { one_cell_of_each_schedule(self, 4, 1); }

/// Every head, including tied embeddings, whose two ends are on one rank in a V-shaped schedule.
RANK_TEST(Schedules, GradientsOfEveryHeadEqualOneProcess, 2) {
  Job job(self);
  for (const TransformerConfig& config : small_configs()) {
    job.train_now(config);
    for (const std::string schedule :
         {"Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"})
      check_gradients(job, small_phase(2, 1, 4, schedule, 0, 2), DType::kFloat64, 11);
  }
}

RANK_TEST(Schedules, GradientsThroughHostMemoryEqualOneProcess, 4) {
  Job job = job_through_host(self);
  for (const std::string schedule : {"Interleaved1F1B", "ZBVZeroBubble"})
    check_gradients(job, small_phase(2, 2, 4, schedule, 0, 2), DType::kFloat64, 11);
}

/// Checks iterations by this list of actions, whose stages may be on any rank. With 4 samples, some micro-batches are
/// empty.
void check_rows(Job& job, const Schedule& list, int d, int first_trainable_layer) {
  const int stages = num_stages(list);
  Phase phase = small_phase(num_pipeline_ranks(list), d, list.num_micro_batches, "", first_trainable_layer);
  phase.partition.clear();
  for (int stage = 0; stage < stages; ++stage)
    phase.partition.push_back({8 * stage / stages, 8 * (stage + 1) / stages});
  if (first_trainable_stage(phase) < list.first_trainable_stage)
    phase.first_trainable_layer = phase.partition[list.first_trainable_stage].begin;
  set_schedule_rows(phase, list.name, rows_of(to_csv(list)), "a test");
  for (const int num_samples : {11, 4}) check_gradients(job, phase, DType::kFloat64, num_samples);
}

/// The list of ZB-V, and random orders that can run.
void lists_of_all_kinds(const RankEnvironment& self, int p, int d) {
  Job job(self);
  for (const int first_trainable_layer : {0, 3})
    check_rows(job, zero_bubble_v({.pipeline_parallel_size = p, .num_micro_batches = 2 * p + 1}), d,
               first_trainable_layer);
  std::mt19937 random(17);
  for (int lists = 0; lists < 12;) {
    const Schedule list = random_order(random);
    if (num_pipeline_ranks(list) != p) continue;
    check_rows(job, lists % 2 == 0 ? list : compute_only(list), d, lists % 3 == 0 ? 4 : 0);
    ++lists;
  }
}
RANK_TEST(ScheduleRows, GradientsOnTwoRanksEqualOneProcess, 2) { lists_of_all_kinds(self, 2, 1); }
RANK_TEST(ScheduleRows, GradientsOnTwoRanksWithReplicasEqualOneProcess, 4) { lists_of_all_kinds(self, 2, 2); }
RANK_TEST(ScheduleRows, GradientsOnFourRanksEqualOneProcess, 4) { lists_of_all_kinds(self, 4, 1); }

/// Uses one micro-batch, and twice as many micro-batches as pipeline ranks; the latter with recomputation.
void nothing_is_left(const RankEnvironment& self, int p, int d,
                     const std::vector<std::string>& schedules = schedule_names()) {
  Job job(self);
  for (const std::string& schedule : schedules) {
    for (const int v : virtual_stages_of(schedule, p)) {
      for (const int m : {1, 2 * p}) {
        for (const int first_trainable : {0, 3}) {
          Phase phase = small_phase(p, d, m, schedule, first_trainable, v);
          if (m > p) phase.recompute = RecomputeMode::stage;
          if (is_possible(phase)) check_nothing_is_left(job, phase);
        }
      }
    }
  }
}
RANK_TEST(Schedules, NothingOfAnIterationIsLeftOnTwoRanks, 2) { nothing_is_left(self, 2, 1); }
RANK_TEST(Schedules, NothingOfAnIterationIsLeftOnFourRanks, 4) {
  nothing_is_left(self, 4, 1, {"1F1B", "ZB-H1", "Interleaved1F1B"});
}
RANK_TEST(Schedules, NothingOfAnIterationIsLeftOnTwoRanksWithReplicas, 4) {
  nothing_is_left(self, 2, 2, {"1F1B", "ZBVZeroBubble", "PipeDream-2BW"});
}
RANK_TEST(LongSchedules, NothingOfAnIterationIsLeftOnFourRanks, 4) { nothing_is_left(self, 4, 1); }
RANK_TEST(LongSchedules, NothingOfAnIterationIsLeftOnTwoRanksWithReplicas, 4) { nothing_is_left(self, 2, 2); }

/// Schedules x layouts x micro-batches x frozen layers (none, a third, a whole stage or more) x recomputation.
void whole_grid(const RankEnvironment& self, int p, int d) {
  Job job(self);
  const std::vector<Recompute> recompute{Recompute(), RecomputeMode::attention, RecomputeMode::layers,
                                         RecomputeMode::stage};
  const std::vector<int> num_micro_batches{1, p, p + 1, 2 * p, 2 * p + 1, 3 * p + 2};
  check_cells(job, p, d, {schedule_names(), {0, 1, 3, 5, 7}, recompute, num_micro_batches});
  check_cells(job, p, d, {schedule_names(), {0, 3}, {Recompute()}, num_micro_batches, DType::kFloat32});
}
RANK_TEST(LongSchedules, GridOn2RanksEqualsOneProcess, 2) { whole_grid(self, 2, 1); }
RANK_TEST(LongSchedules, GridOn4RanksEqualsOneProcess, 4) { whole_grid(self, 4, 1); }
RANK_TEST(LongSchedules, GridOn2RanksWith2ReplicasEqualsOneProcess, 4) { whole_grid(self, 2, 2); }
RANK_TEST(LongSchedules, GridOn4RanksWith2ReplicasEqualsOneProcess, 8) { whole_grid(self, 4, 2); }

}  // namespace
}  // namespace frostpipe::test
