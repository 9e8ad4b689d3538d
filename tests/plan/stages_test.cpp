// Oracles: the builders, which place the stages, and a search for each layer by itself.
#include "plan/stages.h"

#include <gmock/gmock.h>

#include <set>

#include "plan/schedule_rules.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;

/// One layer per stage.
Phase phase_of(int pipeline_ranks, int virtual_stages, int replicas) {
  Phase phase;
  phase.layout = {.pipeline_parallel_size = pipeline_ranks, .data_parallel_size = replicas};
  phase.virtual_stages = virtual_stages;
  phase.schedule = virtual_stages == 1 ? "1F1B" : "Interleaved1F1B";
  phase.num_micro_batches = pipeline_ranks;
  for (int stage = 0; stage < pipeline_ranks * virtual_stages; ++stage) phase.partition.push_back({stage, stage + 1});
  return phase;
}

TEST(Stages, AreWhereTheScheduleHasThem) {
  for (const std::string& name : schedule_names()) {
    for (int p = 1; p <= 5; ++p) {
      const ScheduleTraits traits = schedule_traits(name);
      for (int v = traits.least_virtual_stages; v <= std::min(4, traits.max_virtual_stages); ++v) {
        Phase phase = phase_of(p, v, 1);
        phase.schedule = name;
        phase.num_micro_batches = 2 * p;
        const Schedule schedule = schedule_of(phase);
        ASSERT_EQ(num_stages(phase), num_stages(schedule));
        for (int stage = 0; stage < num_stages(phase); ++stage)
          EXPECT_EQ(pipeline_rank_of(phase, stage), schedule.pipeline_rank_of_stage[stage]) << name << " " << stage;
      }
    }
  }
}

TEST(Stages, OfARankAndTheRanksOfAStage) {
  Phase phase = phase_of(3, 2, 2);
  EXPECT_THAT(stages_on(phase, 1), ElementsAre(1, 4));
  EXPECT_THAT(layers_on(phase, 2), ElementsAre(LayerRange{2, 3}, LayerRange{5, 6}));
  EXPECT_EQ(rank_of_stage(phase, 4, 1), 3);
  EXPECT_THAT(replicas_of_stage(phase, 5), ElementsAre(4, 5));
  phase.layout.placement = {5, 4, 3, 2, 1, 0};
  EXPECT_EQ(rank_of_stage(phase, 4, 1), 2);
  EXPECT_THAT(replicas_of_layer(phase, 3), ElementsAre(5, 4));
  EXPECT_THAT(layers_on(phase_of(4, 1, 1), 3), ElementsAre(LayerRange{3, 4}));
}

TEST(Stages, ThatTrainAndTheFirstOfThemOnEachRank) {
  for (int p = 1; p <= 4; ++p) {
    for (int v = 1; v <= 3; ++v) {
      Phase phase = phase_of(p, v, 1);
      for (phase.first_trainable_layer = 0; phase.first_trainable_layer < p * v; ++phase.first_trainable_layer) {
        std::set<int> seen;  // pipeline ranks
        for (int stage = 0; stage < p * v; ++stage) {
          const bool trains = stage >= phase.first_trainable_layer;
          EXPECT_EQ(are_first_to_train(phase)[stage], trains && seen.insert(stage % p).second) << stage;
        }
        for (int rank = 0; rank < p; ++rank) EXPECT_EQ(trains(phase)[rank], seen.contains(rank)) << rank;
      }
    }
  }
}

TEST(Stages, AreNamedWithTheScheduleWhereARankHasSeveral) {
  EXPECT_EQ(schedule_text(phase_of(2, 1, 1)), "1F1B");
  EXPECT_EQ(schedule_text(phase_of(2, 3, 1)), "Interleaved1F1B, 3 stages per rank");
}

// Oracle: the builder's error for the whole schedule.
TEST(ScheduleRules, AreThoseOfTheBuilders) {
  const auto message_of_throw = [](auto&& run) -> std::string {
    try {
      run();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string& name : schedule_names()) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 30; ++m) {
        for (int v = 1; v <= 3; ++v) {
          const ScheduleShape shape{.pipeline_parallel_size = p, .num_micro_batches = m, .virtual_stages = v};
          EXPECT_EQ(message_of_throw([&] { require_shape(name, shape); }),
                    message_of_throw([&] { build_schedule(name, shape); }))
              << name << " " << p << " " << m << " " << v;
        }
      }
    }
  }
  EXPECT_EQ(message_of_throw([] {
              require_shape("Interleaved1F1B",
                            {.pipeline_parallel_size = 4, .num_micro_batches = (1 << 20) - 1, .virtual_stages = 2});
            }),
            "schedule Interleaved1F1B: number of micro-batches: must be a multiple of the rounds, m / p rounded down, "
            "such as "
            "1048572 or 1048576, is 1048575");
}

}  // namespace
}  // namespace frostpipe
