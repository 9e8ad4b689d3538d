#include "plan/schedule.h"

#include <algorithm>
#include <map>
#include <random>

#include "plan/memory.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::zig_zag;
using testing::AllOf;
using testing::HasSubstr;

struct Case {
  std::string name;
  ScheduleShape shape;
};

/// Every builder of one stage per rank and whole backwards with p = 1..6, m = 1..9 and every first trainable stage.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string name : {"GPipe", "1F1B"})
    for (int p = 1; p <= 6; ++p)
      for (int m = 1; m <= 9; ++m)
        for (int first = 0; first < p; ++first) cases.push_back({name, {p, m, first}});
  return cases;
}

std::string describe(const Case& c) {
  return c.name + " p " + std::to_string(c.shape.pipeline_parallel_size) + " m " +
         std::to_string(c.shape.num_micro_batches) + " first " + std::to_string(c.shape.first_trainable_stage);
}

/// Returns the named action's index on its pipeline rank, -1 if it is missing.
int index_of(const Schedule& schedule, int pipeline_rank, std::string_view text) {
  const auto& list = schedule.body.at(pipeline_rank);
  const auto found = std::find(list.begin(), list.end(), parse_action(text, "test"));
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

void move_to(Schedule& schedule, int pipeline_rank, std::string_view text, int index) {
  auto& list = schedule.body.at(pipeline_rank);
  const int from = index_of(schedule, pipeline_rank, text);
  const Action action = list.at(from);
  list.erase(list.begin() + from);
  list.insert(list.begin() + index, action);
}

void remove(Schedule& schedule, int pipeline_rank, std::string_view text) {
  auto& list = schedule.body.at(pipeline_rank);
  list.erase(list.begin() + index_of(schedule, pipeline_rank, text));
}

TEST(GPipe, RunsAllForwardsThenAllBackwards) {
  EXPECT_EQ(to_text(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 3})),
            "rank 0: 0F0 0F1 0F2 0B0 0B1 0B2\n"
            "rank 1: 1F0 1F1 1F2 1B0 1B1 1B2\n");
}

TEST(OneFOneB, WarmsUpWithOneMicroBatchFewerPerStage) {
  EXPECT_EQ(to_text(one_f_one_b({.pipeline_parallel_size = 3, .num_micro_batches = 4})),
            "rank 0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3\n"
            "rank 1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n"
            "rank 2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3\n");
}

TEST(OneFOneB, HasFewerMicroBatchesThanStages) {
  EXPECT_EQ(to_text(one_f_one_b({.pipeline_parallel_size = 4, .num_micro_batches = 2})),
            "rank 0: 0F0 0F1 0B0 0B1\n"
            "rank 1: 1F0 1F1 1B0 1B1\n"
            "rank 2: 2F0 2F1 2B0 2B1\n"
            "rank 3: 3F0 3B0 3F1 3B1\n");
}

TEST(OneFOneB, FrozenStagesRunForwardOnly) {
  EXPECT_EQ(
      to_text(lower(one_f_one_b({.pipeline_parallel_size = 3, .num_micro_batches = 2, .first_trainable_stage = 1}))),
      "rank 0: 0F0 0SEND_F0 0F1 0SEND_F1\n"
      "rank 1: 1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1RECV_B1 1B1 1REDUCE_GRAD 1OPTIMIZER_STEP\n"
      "rank 2: 2RECV_F0 2F0 2B0 2SEND_B0 2RECV_F1 2F1 2B1 2SEND_B1 2REDUCE_GRAD 2OPTIMIZER_STEP\n");
}

TEST(BuildSchedule, KnowsPyTorchsNamesInAnyCase) {
  const ScheduleShape shape{.pipeline_parallel_size = 2, .num_micro_batches = 3};
  EXPECT_EQ(build_schedule("GPIPE", shape), gpipe(shape));
  EXPECT_EQ(build_schedule("1f1b", shape), one_f_one_b(shape));
  EXPECT_EQ(build_schedule("gpipe", shape).name, "GPipe");
  EXPECT_EQ(message_of([&] { build_schedule("zigzag", shape); }),
            "schedule: must be one of GPipe, 1F1B, Interleaved1F1B, LoopedBFS, ZB-H1, ZB-H2, InterleavedZeroBubble, "
            "ZBVZeroBubble, DualPipeV, PipeDream-2BW, TeraPipe, Seq1F1B, is \"zigzag\"");
}

TEST(BuildSchedule, RefusesShapesThatNoScheduleHas) {
  for (const std::string name : {"GPipe", "1F1B"}) {
    EXPECT_EQ(message_of([&] {
                build_schedule(name, {0, 1, 0});
              }),
              "schedule " + name + ": pipeline-parallel size: must be >= 1, is 0");
    EXPECT_EQ(message_of([&] {
                build_schedule(name, {2, 0, 0});
              }),
              "schedule " + name + ": number of micro-batches: must be >= 1, is 0");
    EXPECT_THAT(message_of([&] { build_schedule(name, {2, 1, 2}); }), HasSubstr("always trains), is 2"));
    EXPECT_THROW(build_schedule(name, {2, 1, -1}), InvalidInput);
  }
}

TEST(SplitsBackward, OfAListIsWhetherItHasW) {
  EXPECT_TRUE(splits_backward(zig_zag()));  // beside unsplit backwards, and under a name that no builder has
  EXPECT_FALSE(splits_backward(zig_zag().name));
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = build_schedule(name, {.pipeline_parallel_size = 2, .num_micro_batches = 8});
    EXPECT_EQ(splits_backward(schedule), splits_backward(name)) << name;
    EXPECT_EQ(splits_backward(lower(schedule)), splits_backward(name)) << name;
  }
}

TEST(AnySchedule, RunsEveryMicroBatchOnceAndForwardBeforeBackward) {
  for (const auto& c : all_cases()) {
    SCOPED_TRACE(describe(c));
    const Schedule schedule = build_schedule(c.name, c.shape);
    const int m = c.shape.num_micro_batches;
    for (int stage = 0; stage < num_stages(schedule); ++stage) {
      const bool trains = stage >= c.shape.first_trainable_stage;
      EXPECT_EQ(static_cast<int>(schedule.body[stage].size()), trains ? 2 * m : m);
      for (int i = 0; i < m; ++i) {
        const int f = index_of(schedule, stage, std::to_string(stage) + "F" + std::to_string(i));
        const int b = index_of(schedule, stage, std::to_string(stage) + "B" + std::to_string(i));
        EXPECT_GE(f, 0);
        if (trains)
          EXPECT_GT(b, f);
        else
          EXPECT_EQ(b, -1);
      }
    }
  }
}

TEST(AnySchedule, IsValidWhenLowered) {
  for (const auto& c : all_cases()) {
    SCOPED_TRACE(describe(c));
    EXPECT_NO_THROW(validate(lower(build_schedule(c.name, c.shape))));
  }
}

TEST(AnySchedule, HasTheClosedFormOfMicroBatchesInFlight) {
  // GPipe keeps m, 1F1B min(p - r, m) on pipeline rank r; frozen pipeline ranks keep nothing.
  for (const auto& c : all_cases()) {
    SCOPED_TRACE(describe(c));
    const int p = c.shape.pipeline_parallel_size, m = c.shape.num_micro_batches, first = c.shape.first_trainable_stage;
    const auto peaks = peak_in_flight(lower(build_schedule(c.name, c.shape)));
    for (int r = 0; r < p; ++r) {
      const int expected = c.name == "GPipe" ? m : std::min(p - r, m);
      EXPECT_EQ(peaks[r], r < first ? 0 : expected);
    }
  }
}

/// Returns whether the schedule allows this shape.
bool has_shape(const std::string& name, int p, int m) {
  if (name == "ZB-H2") return m >= 2 * p - 1;
  if (name == "DualPipeV") return m >= 2 * p;
  if (name == "PipeDream-2BW") return m >= p;
  if (name.starts_with("Interleaved")) return m % std::max(1, m / p) == 0;
  return true;
}

TEST(AnySchedule, RunsEveryStagesWorkOnceMakesProgressAndMayBeFrozen) {
  // Every name, p = 1..5, m = 1..12, every first trainable stage: the validator counts F, B or I and W of every stage
  // and finds cycles.
  int checked = 0;
  for (const auto& name : schedule_names()) {
    for (int p = 1; p <= 5; ++p) {
      for (int m = 1; m <= 12; ++m) {
        if (!has_shape(name, p, m)) {
          EXPECT_THAT(message_of([&] {
                        build_schedule(name, {p, m, 0});
                      }),
                      HasSubstr("schedule " + name + ": number of micro-batches: must be"));
          continue;
        }
        const int stages = num_stages(build_schedule(name, {p, m, 0}));
        for (int first = 0; first < stages; ++first, ++checked) {
          SCOPED_TRACE(describe({name, {p, m, first}}));
          EXPECT_NO_THROW(validate(lower(build_schedule(name, {p, m, first}))));
        }
      }
    }
  }
  EXPECT_GT(checked, 1500);
}

TEST(AnySchedule, VirtualStagesAreWhatTheScheduleAllows) {
  EXPECT_EQ(
      num_stages(interleaved_one_f_one_b({.pipeline_parallel_size = 4, .num_micro_batches = 8, .virtual_stages = 3})),
      12);
  EXPECT_EQ(zero_bubble_v({.pipeline_parallel_size = 3, .num_micro_batches = 6}).pipeline_rank_of_stage,
            (std::vector<int>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(looped_bfs({.pipeline_parallel_size = 3, .num_micro_batches = 6}).pipeline_rank_of_stage,
            (std::vector<int>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(message_of([&] {
              build_schedule("1F1B", {.pipeline_parallel_size = 2, .num_micro_batches = 2, .virtual_stages = 2});
            }),
            "schedule 1F1B: stages per rank: must be 1, is 2");
  EXPECT_EQ(message_of([&] {
              build_schedule("DualPipeV", {.pipeline_parallel_size = 2, .num_micro_batches = 4, .virtual_stages = 3});
            }),
            "schedule DualPipeV: stages per rank: must be 2, is 3");
}

TEST(AnySchedule, MissingAnyActionIsRejected) {
  for (const auto& c : {Case{"GPipe", {3, 3, 0}}, Case{"1F1B", {3, 4, 0}}, Case{"1F1B", {4, 3, 2}}}) {
    const Schedule good = lower(build_schedule(c.name, c.shape));
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(good); ++pipeline_rank) {
      for (std::size_t i = 0; i < good.body[pipeline_rank].size(); ++i) {
        Schedule bad = good;
        bad.body[pipeline_rank].erase(bad.body[pipeline_rank].begin() + i);
        EXPECT_THAT(message_of([&] { validate(bad); }), HasSubstr("missing")) << to_string(good.body[pipeline_rank][i]);
      }
    }
  }
}

/// Brute force: whether every pipeline rank finishes if any that can go on does.
bool makes_progress(const Schedule& schedule) {
  std::map<Action, bool> done;
  std::vector<std::size_t> next(num_pipeline_ranks(schedule), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule); ++pipeline_rank) {
      const auto& list = schedule.body[pipeline_rank];
      while (next[pipeline_rank] < list.size()) {
        const Action& action = list[next[pipeline_rank]];
        auto needed = Dependencies(schedule).of(action);
        if (action.kind == ActionKind::optimizer_step)
          for (int stage = schedule.first_trainable_stage; stage < num_stages(schedule); ++stage)
            needed.push_back({.kind = ActionKind::reduce_gradient, .stage = stage});
        if (!std::all_of(needed.begin(), needed.end(), [&](const Action& a) { return done[a]; })) break;
        done[action] = true;
        ++next[pipeline_rank];
        progress = true;
      }
    }
  }
  for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule); ++pipeline_rank)
    if (next[pipeline_rank] != schedule.body[pipeline_rank].size()) return false;
  return true;
}

TEST(AnySchedule, ShuffledOnesAreAcceptedExactlyWhenTheyMakeProgress) {
  std::mt19937 random(5);
  int accepted = 0, rejected = 0;
  for (int round = 0; round < 3000; ++round) {
    const int p = 1 + static_cast<int>(random() % 4), m = 1 + static_cast<int>(random() % 4);
    const Case c{random() % 2 ? "GPipe" : "1F1B", {p, m, static_cast<int>(random() % p)}};
    Schedule schedule = lower(build_schedule(c.name, c.shape));
    for (int swap = 0; swap < 3; ++swap) {
      auto& list = schedule.body[random() % schedule.body.size()];
      const std::size_t i = random() % list.size();
      std::swap(list[i], list[std::min(list.size() - 1, i + 1 + random() % 3)]);
    }
    bool is_valid = true;
    try {
      validate(schedule);
    } catch (const InvalidInput&) {
      is_valid = false;
    }
    EXPECT_EQ(is_valid, makes_progress(schedule)) << to_text(schedule);
    (is_valid ? accepted : rejected) += 1;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(rejected, 100);
}

TEST(ValidateSchedule, PrintsTheCycleOfADeadlock) {
  // Pipeline rank 0 keeps back the forward that rank 1 needs before it can send the gradient for which rank 0 waits.
  Schedule schedule = lower(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 2}));
  move_to(schedule, 0, "0SEND_F1", index_of(schedule, 0, "0B0"));
  const auto message = message_of([&] { validate(schedule); });
  EXPECT_THAT(message, HasSubstr("schedule GPipe: pipeline ranks wait for each other forever: "));
  EXPECT_THAT(message, AllOf(HasSubstr("0SEND_F1 (pipeline rank 0"), HasSubstr("0RECV_B0 (pipeline rank 0"),
                             HasSubstr("1SEND_B0 (pipeline rank 1"), HasSubstr("1RECV_F1 (pipeline rank 1")));
  EXPECT_THAT(message,
              HasSubstr("0RECV_B0 (pipeline rank 0, before compute action 3), which waits for 1SEND_B0 (pipeline "
                        "rank 1, after compute action 3)"));
  EXPECT_THAT(message, HasSubstr("1SEND_B0 (pipeline rank 1, after compute action 3) stands after 1RECV_F1 (pipeline "
                                 "rank 1, before compute action 2)"));
}

TEST(ValidateSchedule, AnOptimizerStepSynchronizesAllStages) {
  // Pipeline rank 1 takes its step before it sends the gradient that pipeline rank 0 needs before its own.
  Schedule schedule = lower(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 1}));
  move_to(schedule, 1, "1SEND_B0", static_cast<int>(schedule.body[1].size()) - 1);
  EXPECT_THAT(message_of([&] { validate(schedule); }),
              AllOf(HasSubstr("1SEND_B0"), HasSubstr("1OPTIMIZER_STEP"), HasSubstr("0REDUCE_GRAD")));
}

TEST(ValidateSchedule, NamesThePlaceOfWhatIsWrong) {
  const auto error_of = [](auto change) {
    Schedule schedule =
        lower(one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 2, .first_trainable_stage = 0}));
    change(schedule);
    return message_of([&] { validate(schedule); });
  };
  EXPECT_EQ(error_of([](Schedule& s) { move_to(s, 0, "0F1", 9); }),
            "schedule 1F1B: pipeline rank 0, after compute action 1: 0SEND_F1 waits for 0F1 (compute action 4), which "
            "stands after it");
  EXPECT_EQ(error_of([](Schedule& s) { s.body[0].push_back(parse_action("0F0", "")); }),
            "schedule 1F1B: pipeline rank 0, compute action 5: 0F0 stands twice (first: compute action 1)");
  EXPECT_EQ(
      error_of([](Schedule& s) { s.body[0].push_back(parse_action("1F0", "")); }),
      "schedule 1F1B: pipeline rank 0, compute action 5: 1F0 must stand on pipeline rank 1, where its stage lives");
  EXPECT_EQ(error_of([](Schedule& s) { s.body[0].push_back(parse_action("2F0", "")); }),
            "schedule 1F1B: pipeline rank 0, compute action 5: 2F0 must have a stage < 2");
  EXPECT_EQ(
      error_of([](Schedule& s) { s.body[0].push_back(parse_action("0RECV_F0", "")); }),
      "schedule 1F1B: pipeline rank 0, after compute action 4: 0RECV_F0 waits for -1SEND_F0, which no stage can give");
  EXPECT_EQ(
      error_of([](Schedule& s) { remove(s, 0, "0RECV_B1"); }),
      "schedule 1F1B: pipeline rank 0, compute action 4: 0B1 waits for 0RECV_B1, which is missing on pipeline rank 0");
  EXPECT_EQ(error_of([](Schedule& s) { s.body[0].push_back(parse_action("0F2", "")); }),
            "schedule 1F1B: pipeline rank 0, compute action 5: 0F2 must have a micro-batch < 2");
  EXPECT_EQ(error_of([](Schedule& s) { s.body[0].push_back(parse_action("0SEND_B0", "")); }),
            "schedule 1F1B: pipeline rank 0, after compute action 4: 0SEND_B0 goes to stage -1, which does not exist");
  EXPECT_EQ(error_of([](Schedule& s) { remove(s, 1, "1B1"); }),
            "schedule 1F1B: pipeline rank 1, stage 1: 1B1 is missing");
  EXPECT_EQ(error_of([](Schedule& s) { s.first_trainable_stage = 1; }),
            "schedule 1F1B: pipeline rank 0, before compute action 3: 0RECV_B0 must not be there: stages before 1 are "
            "frozen and run F only");
  EXPECT_EQ(error_of([](Schedule& s) { s.first_trainable_stage = 2; }),
            "schedule 1F1B: first trainable stage: must be >= 0 and < 2, is 2");
  EXPECT_EQ(error_of([](Schedule& s) { s.pipeline_rank_of_stage[1] = 2; }),
            "schedule 1F1B: stage 1: must live on one of 2 pipeline ranks, is on 2");
  EXPECT_EQ(error_of([](Schedule& s) { s.num_micro_batches = 3; }),
            "schedule 1F1B: pipeline rank 0, stage 0: 0F2 is missing");
  EXPECT_THAT(error_of([](Schedule& s) { s.prologue.resize(2); }),
              HasSubstr("must have a prologue and an epilogue for each of 2 pipeline ranks"));
  EXPECT_THAT(error_of([](Schedule& s) { s.body[0].back().overlaps_next = true; }), HasSubstr("is the last"));
  EXPECT_THAT(error_of([](Schedule& s) { s.body[0][0].micro_batch = std::nullopt; }),
              HasSubstr("must have a micro-batch"));
}

}  // namespace
}  // namespace frostpipe
