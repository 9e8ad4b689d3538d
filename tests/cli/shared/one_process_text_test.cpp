#include "cli/shared/one_process_text.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TrainingPlan plan_of_one_process(int threads, bool freezes, bool caches) {
  TrainingPlan plan;
  plan.threads_per_rank = threads;
  plan.phases.resize(2);
  if (freezes) plan.phases[1].first_trainable_layer = 3;
  plan.phases[1].cache.on = caches;
  return plan;
}

TEST(OneProcessLine, SaysWhatIsLeftOfAPlan) {
  EXPECT_EQ(one_process_line(plan_of_one_process(2, true, true), true),
            "One process with 2 threads is fastest here: this run freezes and caches, without a pipeline.\n");
  EXPECT_EQ(one_process_line(plan_of_one_process(2, true, false), false),
            "One process with 2 threads: this run freezes, without a pipeline.\n");
  EXPECT_EQ(one_process_line(plan_of_one_process(1, false, false), false), "One process: this run has no pipeline.\n");
  TrainingPlan of_two = plan_of_one_process(1, true, true);
  of_two.world_size = 2;
  EXPECT_EQ(one_process_line(of_two, true), "");
}

TEST(OneProcessLine, SaysWhatARunDid) {
  RunSummary run;
  run.name = "elastic";
  run.threads_per_rank = 4;
  run.phases.resize(1);
  EXPECT_EQ(one_process_line(run), "") << "nothing froze";
  run.phases[0].frozen_blocks = 2;
  run.phases[0].first_trainable_layer = 5;
  EXPECT_EQ(one_process_line(run), "One process with 4 threads: the elastic run froze, without a pipeline.\n");
  run.phases[0].cache = true;
  EXPECT_EQ(one_process_line(run),
            "One process with 4 threads: the elastic run froze and cached, without a pipeline.\n");
  run.world_size = 2;
  EXPECT_EQ(one_process_line(run), "");
}

}  // namespace
}  // namespace frostpipe
