// Oracle: a builder's schedule, written as rows and read again.
#include "plan/schedule_rows.h"

#include <algorithm>
#include <functional>
#include <random>

#include "plan/memory.h"
#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "tests/plan/examples.h"
#include "tests/support/random_schedules.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::message_of;
using examples::two_phase_plan;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Two layers per stage, for a chain_model with one block fewer than stages.
Phase phase_of(const std::string& schedule, int p, int v, int m) {
  Phase phase;
  phase.layout.pipeline_parallel_size = p;
  for (int stage = 0; stage < p * v; ++stage) phase.partition.push_back({2 * stage, 2 * stage + 2});
  phase.num_micro_batches = m;
  phase.schedule = schedule;
  phase.virtual_stages = v;
  phase.tokens = 16;
  if (schedule_traits(schedule).has_slices) phase.token_slices = {4, 4, 8};
  return phase;
}

/// Visits every schedule of plans whose iterations do not overlap, with 1 to 3 ranks, up to 3 stages per rank, and
/// several numbers of micro-batches and frozen stages.
template <class Check>
void for_each_phase(Check check) {
  for (const std::string& name : schedule_names()) {
    const ScheduleTraits traits = schedule_traits(name);
    if (traits.weight_delay > 0) continue;
    for (int p = 1; p <= 3; ++p) {
      for (int v = traits.least_virtual_stages; v <= std::min(3, traits.max_virtual_stages); ++v) {
        for (const int m : {p, 2 * p, 2 * p + 1}) {
          for (int frozen = 0; frozen < p * v; ++frozen) {
            Phase phase = phase_of(name, p, v, m);
            phase.first_trainable_layer = 2 * frozen;
            try {
              require_shape(name, {p, m, frozen, v, num_slices(phase)});
            } catch (const InvalidInput&) {
              continue;
            }
            check(phase);
          }
        }
      }
    }
  }
}

/// Returns the phase with its builder's schedule as rows, in which every stage trains.
Phase by_rows(const Phase& phase, bool with_messages) {
  const Schedule made = build_schedule(phase.schedule, {.pipeline_parallel_size = phase.layout.pipeline_parallel_size,
                                                        .num_micro_batches = phase.num_micro_batches,
                                                        .virtual_stages = phase.virtual_stages,
                                                        .token_slices = num_slices(phase)});
  Phase other = phase;
  set_schedule_rows(other, phase.schedule + ".csv", rows_of(to_csv(with_messages ? lower(made) : made)), "a test");
  return other;
}

TEST(ScheduleRows, GiveTheBuildersSchedule) {
  for_each_phase([](const Phase& phase) {
    for (const bool with_messages : {false, true}) {
      const Phase other = by_rows(phase, with_messages);
      Schedule made = schedule_of(phase);
      made.name += ".csv";
      EXPECT_EQ(schedule_of(other).body, made.body) << schedule_text(phase);
      EXPECT_EQ(schedule_of(other).pipeline_rank_of_stage, made.pipeline_rank_of_stage);
      EXPECT_EQ(schedule_of(other).first_trainable_stage, made.first_trainable_stage);
      EXPECT_EQ(schedule_of(other).name, made.name);
      EXPECT_EQ(other.virtual_stages, phase.virtual_stages);
      EXPECT_EQ(splits_backward(other), splits_backward(phase));
      EXPECT_NO_THROW(require_schedule_rows(other, "phases[0]")) << schedule_text(phase);
    }
  });
}

TEST(ScheduleRows, HaveTheCachesActionsOfThePhase) {
  Phase phase = phase_of("Interleaved1F1B", 2, 2, 4);
  phase.first_trainable_layer = 5;
  phase.cache.on = true;
  EXPECT_EQ(schedule_of(by_rows(phase, true)).body, schedule_of(phase).body);
}

TEST(ScheduleRows, TakeTheMemoryOfTheBuildersSchedule) {
  for_each_phase([](const Phase& phase) {
    Profile profile = examples::flat_profile(chain_model(num_stages(phase) - 1), 4, 16);
    for (Measurement& one : profile.measurements) one.cost.split_backward = {1000, 1000, 300};
    const int p = phase.layout.pipeline_parallel_size;
    const StepSettings settings{.global_batch_size = 4 * phase.num_micro_batches};
    EXPECT_EQ(memory_of(by_rows(phase, false), settings, profile, examples::cluster_of(p)),
              memory_of(phase, settings, profile, examples::cluster_of(p)))
        << schedule_text(phase) << " " << phase.num_micro_batches;
  });
}

TEST(ScheduleRows, OfAnyValidListRun) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Schedule lowered = test::random_order(random);
    Phase phase = phase_of("", num_pipeline_ranks(lowered), 1, lowered.num_micro_batches);
    phase.partition.clear();
    for (int stage = 0; stage < num_stages(lowered); ++stage) phase.partition.push_back({stage, stage + 1});
    phase.first_trainable_layer = lowered.first_trainable_stage;
    set_schedule_rows(phase, "any.csv", rows_of(to_csv(round % 2 == 0 ? lowered : compute_only(lowered))), "a test");
    EXPECT_NO_THROW(require_schedule_rows(phase, "phases[0]"));
    EXPECT_EQ(schedule_of(phase).body, lowered.body);
    for (int stage = 0; stage < num_stages(lowered); ++stage)
      EXPECT_EQ(pipeline_rank_of(phase, stage), lowered.pipeline_rank_of_stage[stage]);
    phase.first_trainable_layer = num_stages(lowered) - 1;  // more stages are frozen
    EXPECT_NO_THROW(validate(schedule_of(phase)));
  }
}

TEST(ScheduleRows, MayPutAnyNumberOfStagesOnARank) {
  Phase phase = phase_of("", 2, 1, 1);
  phase.partition = {{0, 1}, {1, 2}, {2, 4}};
  set_schedule_rows(phase, "uneven.csv", {"1F0,1B0", "0F0,2F0,2B0,0B0"}, "a test");
  EXPECT_EQ(num_stages(phase), 3);
  EXPECT_THAT(stages_on(phase, 1), ElementsAre(0, 2));
  EXPECT_THAT(layers_on(phase, 0), ElementsAre(LayerRange{1, 2}));
  EXPECT_EQ(schedule_text(phase), "uneven.csv, up to 2 stages per rank");
  EXPECT_NO_THROW(require_schedule_rows(phase, "phases[0]"));
}

TEST(ScheduleRows, LeaveOutWhatThePhaseDecides) {
  Phase phase = phase_of("", 2, 1, 1);
  set_schedule_rows(phase, "mine.csv",
                    {"0UNSHARD,0F0,0SEND_F0,0RECV_B0,0RECOMPUTE0,0B0,0REDUCE_GRAD,0RESHARD",
                     "1RECV_F0,,1F0,(1B0)OVERLAP_F_B,1SEND_B0,1REDUCE_GRAD"},
                    "a test");
  EXPECT_EQ(schedule_of(phase).body, schedule_of(phase_of("1F1B", 2, 1, 1)).body);
}

/// The second phase of the example by rows: 2 ranks with 4 micro-batches, where only the second stage trains.
TrainingPlan plan_by_rows(std::vector<std::string> rows = {"0F0,0F1,0F2,0F3", "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3"}) {
  TrainingPlan plan = two_phase_plan();
  plan.phases[1].first_trainable_layer = 7;
  set_schedule_rows(plan.phases[1], "mine.csv", std::move(rows), "a test");
  return plan;
}

TEST(ScheduleRows, AreInTheFileOfThePlanWhichIsOfVersion2) {
  const std::string text = to_json(plan_by_rows());
  EXPECT_THAT(text, HasSubstr("\"version\": 2"));
  EXPECT_THAT(text, HasSubstr("\"schedule\": \"mine.csv\",\n   \"schedule_rows\": [\"0F0,0F1,0F2,0F3\", \"1F0,1B0,"));
  EXPECT_EQ(plan_from_json(text, "plan.json"), plan_by_rows());
  EXPECT_NO_THROW(validate(plan_by_rows(), chain_model(4), "plan.json"));
  EXPECT_THAT(to_json(two_phase_plan()), Not(HasSubstr("schedule_rows")));
}

TEST(ScheduleRows, ThatCannotBeReadAreNamed) {
  EXPECT_EQ(
      message_of(
          [] { plan_from_json(examples::with(to_json(plan_by_rows()), "\"0F0,0F1,", "\"0F0,0G1,"), "plan.json"); }),
      "plan.json: phases[1].schedule_rows, row 1, field 2: must have a known kind such as F, B, SEND_F or REDUCE_GRAD "
      "after the stage, is \"0G1\"");
  EXPECT_THAT(message_of([] {
                plan_from_json(examples::with(to_json(plan_by_rows()), "\"0F0,0F1,", "\"0F0\\n0F1,"), "plan.json");
              }),
              HasSubstr("plan.json: phases[1].schedule_rows, row 1: must be one line, is"));
}

TEST(ScheduleRows, ThatDoNotFitTheirPhaseAreRefused) {
  const auto error_of = [](std::vector<std::string> rows, const std::function<void(Phase&)>& change = {}) {
    TrainingPlan plan = plan_by_rows(std::move(rows));
    if (change) change(plan.phases[1]);
    return message_of([&] { validate(plan, chain_model(4), "plan.json"); });
  };
  const std::vector<std::string> good = plan_by_rows().phases[1].schedule_rows;
  const std::string place = "plan.json: phases[1].schedule_rows: ";
  EXPECT_EQ(error_of({good[0] + ",0F4", good[1] + ",1F4,1B4"}),
            place +
                "must have 2 pipeline ranks, 2 stages and 4 micro-batches, as the phase has, is 2 pipeline ranks, 2 "
                "stages and 5 micro-batches");
  EXPECT_EQ(error_of({"0F0,1F0,1B0,0F1,1F1,1B1,0F2,1F2,1B2,0F3,1F3,1B3", ","}),
            place + "must have a stage on every pipeline rank, is none in row 2");
  EXPECT_EQ(error_of(good, [](Phase& phase) { phase.first_trainable_layer = 5; }),
            place +
                "must have backwards of stage 0, which trains: its first trainable layer is 5, is without those of "
                "stages before 1");
  EXPECT_EQ(error_of({"0F0,0F1,0F2,0F3", "1F0,1B0,1F1,1B1,1F2,1B2,1F3"}),
            "schedule plan.json: phases[1].schedule_rows: pipeline rank 1, stage 1: 1B3 is missing");
  EXPECT_EQ(error_of({"0F0@1,0F1,0F2,0F3", good[1]}),
            place + "must have no later iterations or weight versions, which plans do not support, is 0F0@1");
  EXPECT_EQ(
      error_of({"0F0s0,0F0s1", "1F0s0,1F0s1,1B0s1,1B0s0"}, [](Phase& phase) { phase.num_micro_batches = 1; }),
      place +
          "must have 2 pipeline ranks, 2 stages and 1 micro-batch, as the phase has, is 2 pipeline ranks, 2 stages "
          "and 1 micro-batch of 2 token slices");
  EXPECT_EQ(error_of(good, [](Phase& phase) { phase.virtual_stages = 2; }),
            "plan.json: phases[1].virtual_stages: must be 1, as many as one of schedule_rows has, is 2");
  EXPECT_EQ(
      error_of(good, [](Phase& phase) { phase.schedule = "1F1B"; }),
      "plan.json: phases[1].schedule: must be a name that no built-in schedule has where there are schedule_rows, is "
      "\"1F1B\"");
}

TEST(ScheduleFile, IsFollowedByEveryPhase) {
  TrainingPlan plan = two_phase_plan();
  plan.phases.erase(plan.phases.begin());
  plan.phases[0].from_step = 0;
  const std::string csv = to_csv(zero_bubble_h1({.pipeline_parallel_size = 2, .num_micro_batches = 4}));
  const TrainingPlan by_file = with_schedule_of_file(plan, csv, "folder/zb.csv", "plan.json");
  EXPECT_EQ(by_file.phases[0].schedule, "zb.csv");
  EXPECT_EQ(by_file.phases[0].schedule_rows, rows_of(csv));
  EXPECT_EQ(by_file.phases[0].predicted, PhasePrediction{});
  EXPECT_NO_THROW(validate(by_file, chain_model(4), "plan.json"));
  EXPECT_EQ(message_of([&] { with_schedule_of_file(two_phase_plan(), csv, "zb.csv", "plan.json"); }),
            "zb.csv: has 2 pipeline ranks, 2 stages and 4 micro-batches, but phases[0] of plan.json has 4 pipeline "
            "ranks, 4 stages and 8 micro-batches; plan with --fix pp=2 --fix m=4 and a --schedule of as many stages");
  EXPECT_THAT(message_of([&] { with_schedule_of_file(plan, "0F0,0B0\n1B0,1F0\n", "bad.csv", "plan.json"); }),
              testing::StartsWith("schedule bad.csv: pipeline rank 1, compute action 1: 1B0 waits for "));
}

TEST(ScheduleFile, MayNotHaveTheNameOfABuiltInSchedule) {
  TrainingPlan plan = two_phase_plan();
  plan.phases.erase(plan.phases.begin());
  plan.phases[0].from_step = 0;
  const std::string csv = to_csv(zero_bubble_h1({.pipeline_parallel_size = 2, .num_micro_batches = 4}));
  EXPECT_EQ(message_of([&] { with_schedule_of_file(plan, csv, "folder/1F1B", "plan.json"); }),
            "folder/1F1B: must have a name that no built-in schedule has (rename it, to 1F1B.csv say), is 1F1B");
  for (const std::string& name : schedule_names())
    EXPECT_THAT(message_of([&] { with_schedule_of_file(plan, csv, name, "plan.json"); }),
                testing::StartsWith(name + ": must have a name that no built-in schedule has"));
  EXPECT_THAT(message_of([&] { with_schedule_of_file(plan, csv, "zb-h1", "plan.json"); }),
              testing::StartsWith("zb-h1: must have a name that no built-in schedule has"));
  EXPECT_EQ(with_schedule_of_file(plan, csv, "1F1B/1F1B.csv", "plan.json").phases[0].schedule, "1F1B.csv");
}

}  // namespace
}  // namespace frostpipe
