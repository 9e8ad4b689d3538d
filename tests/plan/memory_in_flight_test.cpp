// Activations in flight with split backwards and with several stages per rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/schedule_rows.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::cluster_of;
using examples::flat_profile;
using examples::two_stages;

/// Every layer keeps 1000 B from F to I and `kept` from I to W.
Profile split_profile(Bytes kept) {
  Profile profile = flat_profile(chain_model(2), 4, 16);
  for (Measurement& one : profile.measurements) one.cost.split_backward = SplitBackward{500, 500, kept};
  return profile;
}

std::vector<RankMemory> split_memory(const Phase& phase, Bytes kept) {
  return memory_of(phase, {.global_batch_size = 4 * phase.num_micro_batches}, split_profile(kept), cluster_of(2));
}

// ZB-H1 on two ranks: rank 0 runs F0 F1 I0 W0 F2 I1 W1 ..., rank 1 F0 I0 F1 I1 W0 ... with W one micro-batch behind.
TEST(Memory, OfASplitBackwardIsWhatEachMomentOfTheListHolds) {
  Phase phase = two_stages();
  phase.schedule = "ZB-H1";
  phase.num_micro_batches = 4;
  const auto peaks = peaks_in_flight(phase, 0);
  ASSERT_EQ(to_text(build_schedule("ZB-H1", {2, 4})),
            "rank 0: 0F0 0F1 0I0 0W0 0F2 0I1 0W1 0F3 0I2 0W2 0I3 0W3\n"
            "rank 1: 1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1F3 1I3 1W2 1W3\n");
  EXPECT_EQ(peaks[0], (std::vector<StagesInFlight>{{{1, 1}}, {{2, 0}}}));
  EXPECT_EQ(peaks[1], (std::vector<StagesInFlight>{{{0, 2}}, {{1, 1}}}));
  const auto little = split_memory(phase, 300), much = split_memory(phase, 1200);
  EXPECT_EQ(little[0].saved_activations, 2 * 3000);        // before the first I
  EXPECT_EQ(little[1].saved_activations, 3100 + 3 * 300);  // in the second F
  EXPECT_EQ(much[0].saved_activations, 3000 + 3 * 1200);   // after the first I
  EXPECT_EQ(much[1].saved_activations, 2 * 3 * 1200);      // after the second I
  EXPECT_EQ(little[1].workspace, 10 + 100);
  EXPECT_EQ(much[1].workspace, 10 + 100 + 3 * 200);  // I leaves more than it finds
}

TEST(Memory, OfASplitBackwardThatComputesAgainHasBothInI) {
  Phase phase = two_stages();
  phase.schedule = "ZB-H1";
  phase.recompute = RecomputeMode::layers;
  const auto pipeline_ranks = split_memory(phase, 300);
  const auto stages = memory_of_stages(phase, {.global_batch_size = 8}, split_profile(300), cluster_of(2));
  EXPECT_EQ(stages[0].until_backward, 100 + 100);
  EXPECT_EQ(stages[0].until_weights, 3 * 300);
  // In the embedding's I: its recomputed activations, and what the two layers after it leave for W, without the last
  // one's saved input.
  EXPECT_EQ(pipeline_ranks[0].workspace, 10 + 100 + 1000 + 2 * 300 - 100);
}

/// Returns what `list` holds at its peak if each stage keeps `kept` per micro-batch from F and `weights` from I.
int max_held(const std::vector<Action>& list, int first_trainable_stage, int kept, int weights) {
  int held = 0, most = 0;
  for (const Action& action : list) {
    if (action.stage < first_trainable_stage) continue;
    if (action.kind == ActionKind::forward) held += kept;
    if (action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient) held -= kept;
    if (action.kind == ActionKind::input_gradient) held += weights;
    if (action.kind == ActionKind::weight_gradient) held -= weights;
    most = std::max(most, held);
  }
  return most;
}

// Oracle: the same schedules with all micro-batches, counted action by action; three iterations where they overlap.
TEST(Memory, MostInFlightIsThatOfTheWholeList) {
  for (const std::string& name : schedule_names()) {
    for (const int p : {1, 2, 3, 4, 5, 6, 24}) {
      for (const int m : {2 * p, 4 * p, 4 * p + 1, 8 * p, 40}) {
        Phase phase = two_stages();
        phase.schedule = name;
        phase.layout.pipeline_parallel_size = p;
        phase.virtual_stages = std::min(2, schedule_traits(name).max_virtual_stages);
        phase.num_micro_batches = m;
        for (int first = 0; first<num_stages(phase); first += p> 6 ? 17 : 1) {
          ScheduleShape shape{p, m, first};
          shape.virtual_stages = phase.virtual_stages;
          shape.token_slices = 1;
          try {
            require_shape(name, shape);
          } catch (const InvalidInput&) {
            continue;
          }
          const Schedule built = build_schedule(name, shape),
                         schedule = unrolled(built, built.epilogue.empty() ? 1 : 3);
          const auto peaks = peaks_in_flight(phase, first);
          for (int rank = 0; rank < p; ++rank) {
            for (const auto& [kept, weights] : {std::pair(5, 0), {5, 2}, {5, 5}, {1, 7}}) {
              int most = 0;
              for (const StagesInFlight& moment : peaks[rank]) {
                int held = 0;
                for (const InFlight& of_stage : moment)
                  held += kept * of_stage.before_backward + weights * of_stage.before_weights;
                most = std::max(most, held);
              }
              EXPECT_EQ(most, max_held(schedule.body[rank], first, kept, weights))
                  << name << " p " << p << " m " << m << " first " << first << " rank " << rank;
            }
          }
        }
      }
    }
  }
}

// ZB-V on two ranks with stages 0 and 1 frozen: stage 0 sends to rank 1, stage 1 passes its output to stage 2 on the
// same rank.
TEST(Memory, OfAVHasNothingSentAheadWhereTheNextStageIsOnTheSameRank) {
  Phase phase = two_stages();
  phase.schedule = "ZBVZeroBubble";
  phase.virtual_stages = 2;
  phase.num_micro_batches = 8;
  phase.partition = {{0, 1}, {1, 2}, {2, 4}, {4, 6}};
  phase.first_trainable_layer = 2;
  const auto pipeline_ranks = split_memory(phase, 300);
  EXPECT_EQ(pipeline_ranks[0].sent_ahead, 8 * 100);
  EXPECT_EQ(pipeline_ranks[1].sent_ahead, 0);
}

/// Returns the maximal number of outputs of `stage` that the next stage, on the same rank, has not consumed yet.
int max_waiting(const std::vector<Action>& list, int stage) {
  int waiting = 0, most = 0;
  for (const Action& action : list) {
    if (action.kind != ActionKind::forward) continue;
    waiting += (action.stage == stage) - (action.stage == stage + 1);
    most = std::max(most, waiting);
  }
  return most;
}

// Oracle: the lists, counted action by action.
TEST(Stages, ThatHandOnAtOnceNeverHaveTwoOutputsWaiting) {
  std::set<std::string> at_once, later;
  for (const std::string& name : schedule_names()) {
    const ScheduleTraits traits = schedule_traits(name);
    for (int p = 1; p <= 4; ++p) {
      for (int v = traits.least_virtual_stages; v <= std::min(4, traits.max_virtual_stages); ++v) {
        for (const int m : {1, 4 * p, 4 * p + 1}) {
          Phase phase = two_stages();
          phase.schedule = name;
          phase.layout.pipeline_parallel_size = p;
          phase.virtual_stages = v;
          phase.num_micro_batches = m;
          for (int stage = 0; stage + 1 < p * v; ++stage) {
            const int rank = pipeline_rank_of(phase, stage);
            if (pipeline_rank_of(phase, stage + 1) != rank) {
              EXPECT_FALSE(hands_on_at_once(phase, stage));
              continue;
            }
            for (int first = 0; first < p * v; ++first) {
              ScheduleShape shape{p, m, first};
              shape.virtual_stages = v;
              try {
                require_shape(name, shape);
              } catch (const InvalidInput&) {
                continue;
              }
              const Schedule schedule = build_schedule(name, shape);
              EXPECT_EQ(hands_on_at_once(phase, stage), max_waiting(schedule.body[rank], stage) == 1)
                  << name << " p " << p << " v " << v << " m " << m << " first " << first;
              (hands_on_at_once(phase, stage) ? at_once : later).insert(name);
              if (first > 0) continue;  // rows of a phase contain all backwards
              Phase by_rows = phase;
              set_schedule_rows(by_rows, "own", rows_of(to_csv(schedule)), "test");
              EXPECT_EQ(hands_on_at_once(by_rows, stage), hands_on_at_once(phase, stage))
                  << name << " p " << p << " v " << v << " m " << m;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(at_once, (std::set<std::string>{"DualPipeV", "Interleaved1F1B", "InterleavedZeroBubble", "LoopedBFS",
                                            "ZBVZeroBubble"}));
  EXPECT_EQ(later, std::set<std::string>{"LoopedBFS"});
}

TEST(Memory, OverTimeHoldsWhatWNeedsUntilItHasEnded) {
  const RankMemory peak{.weights = 1000, .saved_activations = 140};
  const std::vector<RankMemory> stages = {{.until_backward = 100, .until_weights = 40}};
  Trace timeline{.num_ranks = 1, .spans = {}, .events = {}};
  for (const auto& [text, begin, end] :
       {std::tuple{"0F0", 0, 10}, {"0I0", 10, 20}, {"0F1", 20, 30}, {"0W0", 30, 40}, {"0I1", 40, 50}, {"0W1", 50, 60}})
    timeline.spans.push_back(
        {.rank = 0, .step = 0, .action = parse_action(text, "test"), .begin_ns = begin, .end_ns = end});
  std::vector<Bytes> after;
  for (const MemoryChange& change : memory_over_time(timeline, 0, peak, stages))
    if (change.ended) after.push_back(change.bytes);
  EXPECT_EQ(after, (std::vector<Bytes>{1100, 1040, 1140, 1100, 1040, 1000}));
}

/// Equal layers of 100 B output and 1000 B saved, one per stage: each keeps 1100 B per micro-batch, stage 0 only 1000.
Phase looped(const std::string& schedule, int pipeline_ranks, int virtual_stages, int num_micro_batches) {
  Phase phase;
  phase.layout.pipeline_parallel_size = pipeline_ranks;
  phase.virtual_stages = virtual_stages;
  phase.schedule = schedule;
  phase.num_micro_batches = num_micro_batches;
  phase.tokens = 16;
  for (int stage = 0; stage < pipeline_ranks * virtual_stages; ++stage) phase.partition.push_back({stage, stage + 1});
  phase.partition.back().end = 2 * pipeline_ranks * virtual_stages + 2;
  return phase;
}

std::vector<RankMemory> memory_of_looped(const Phase& phase) {
  const int stages = static_cast<int>(phase.partition.size());
  return memory_of(phase, {.global_batch_size = 4 * phase.num_micro_batches}, flat_profile(chain_model(stages), 4, 16),
                   cluster_of(phase.layout.pipeline_parallel_size));
}

// Narayanan et al. 2021: rank r warms up with (v - 1) p + 2 (p - 1 - r) stages, and one more is in flight after that.
TEST(Memory, InterleavedKeepsItsWarmUpAndOneMoreAndLoopedBfsEveryMicroBatch) {
  for (const int p : {2, 3, 4}) {
    for (const int v : {2, 3}) {
      const int m = 3 * p;
      const auto interleaved = memory_of_looped(looped("Interleaved1F1B", p, v, m));
      const auto breadth_first = memory_of_looped(looped("LoopedBFS", p, v, m));
      for (int r = 1; r + 1 < p; ++r) {  // ranks with equal stages
        EXPECT_EQ(interleaved[r].saved_activations, 1100 * ((v - 1) * p + 2 * (p - 1 - r) + 1)) << p << " " << v;
        EXPECT_EQ(breadth_first[r].saved_activations, 1100 * m * v);
        EXPECT_EQ(interleaved[r].workspace, breadth_first[r].workspace);
      }
      EXPECT_EQ(breadth_first[0].saved_activations, 1100 * m * v - 100 * m);
    }
  }
}

// Oracle: the memory of single stages, and what is in flight counted action by action.
TEST(Memory, OfSeveralStagesIsTheirSumAndTheMostThatTheyKeepTogether) {
  for (const char* schedule : {"Interleaved1F1B", "LoopedBFS"}) {
    for (const int frozen : {0, 1, 3, 5, 6}) {
      Phase phase = looped(schedule, 3, 2, 6);
      phase.first_trainable_layer = frozen;
      const Profile profile = flat_profile(chain_model(6), 4, 16);
      const auto stages = memory_of_stages(phase, {.global_batch_size = 24}, profile, cluster_of(3));
      const auto ranks = memory_of_looped(phase);
      const Schedule lists = schedule_of(phase);
      for (int r = 0; r < 3; ++r) {
        EXPECT_EQ(ranks[r].weights, stages[r].weights + stages[r + 3].weights);
        EXPECT_EQ(ranks[r].optimizer_state, stages[r].optimizer_state + stages[r + 3].optimizer_state);
        EXPECT_EQ(ranks[r].workspace, std::max(stages[r].workspace, stages[r + 3].workspace));
        Bytes held = 0, most = 0;
        for (const Action& action : lists.body[r]) {
          if (action.kind == ActionKind::forward) held += stages[action.stage].until_backward;
          if (action.kind == ActionKind::backward) held -= stages[action.stage].until_backward;
          most = std::max(most, held);
        }
        EXPECT_EQ(ranks[r].saved_activations, most) << schedule << " " << frozen << " " << r;
        EXPECT_EQ(held, 0);
      }
    }
  }
}

TEST(Memory, AnExceededLimitNamesThePipelineRankOfSeveralStages) {
  const Phase phase = looped("Interleaved1F1B", 2, 2, 4);
  EXPECT_THAT(what_does_not_fit(phase, memory_of_looped(phase), cluster_of(2, 100)),
              testing::StartsWith("pipeline rank 0 needs "));
}

TEST(Memory, ThePartsOfAnExceededLimitAddUpToTheNeed) {
  RankMemory need{.weights = 1 << 20,
                  .older_weights = 1 << 20,
                  .gradients = 1 << 20,
                  .optimizer_state = 2 << 20,
                  .saved_activations = 2 << 20,
                  .workspace = 1 << 20,
                  .exchange = 3 << 20,
                  .cache = 1 << 20,
                  .sent_ahead = 1 << 20};
  const std::string lasting =
      " (weights 1.00 MiB, older weights 1.00 MiB, gradients 1.00 MiB, optimizer 2.00 MiB, cache 1.00 MiB, sent ahead "
      "1.00 MiB, ";
  const auto misfit = [&] { return what_does_not_fit(two_stages(), {need}, cluster_of(2, 1 << 20)); };
  EXPECT_EQ(misfit(), "stage 0 needs 10.0 MiB" + lasting +
                          "saved activations 2.00 MiB, workspace 1.00 MiB), rank 0 has 1.00 MiB");
  need.exchange = 4 << 20;
  EXPECT_EQ(misfit(),
            "stage 0 needs 11.0 MiB" + lasting +
                "exchange 4.00 MiB in place of saved activations 2.00 MiB and workspace 1.00 MiB), rank 0 has "
                "1.00 MiB");
}

}  // namespace
}  // namespace frostpipe
