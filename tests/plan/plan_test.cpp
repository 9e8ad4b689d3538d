#include "plan/plan.h"

#include <random>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::message_of;
using examples::two_phase_plan;
using examples::with;
using testing::HasSubstr;

TEST(Plan, SurvivesItsFile) {
  TrainingPlan plan = two_phase_plan();
  EXPECT_EQ(plan_from_json(to_json(plan), "plan.json"), plan);
  plan.frozen_dtype = DType::kBFloat16;
  plan.memory_reserve = 0.25;
  EXPECT_EQ(plan_from_json(to_json(plan), "plan.json"), plan);
  EXPECT_EQ(plan_from_json(to_json(TrainingPlan{}), "plan.json"), TrainingPlan{});
}

TEST(Plan, RandomOnesSurviveTheirFileAndItIsDeterministic) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    TrainingPlan plan = two_phase_plan();
    plan.memory_limited = random() % 2;
    plan.dtype = random() % 2 ? DType::kFloat32 : DType::kBFloat16;
    plan.optimizer = random() % 2 ? Optimizer::kAdamW : Optimizer::kSgd;
    plan.provenance.model_name = random() % 2 ? "small" : "\xE2\x88\x9E \\ \"";
    plan.phases.resize(1 + random() % 2);
    for (auto& phase : plan.phases) {
      phase.predicted.iteration_ns = static_cast<Nanoseconds>((std::uint64_t{random()} << 17) + random());
      phase.predicted.peak_memory_bytes.assign(random() % 60, static_cast<Bytes>(random()) << 17);
      phase.tokens = static_cast<int>(random() % 512);
    }
    const auto text = to_json(plan);
    EXPECT_EQ(plan_from_json(text, "plan.json"), plan);
    EXPECT_EQ(to_json(plan_from_json(text, "plan.json")), text);
  }
}

TEST(Plan, OfAnOlderVersionKnowsNoLargestMicroBatch) {
  TrainingPlan plan = two_phase_plan();
  for (Phase& phase : plan.phases) phase.largest_micro_batch_tokens = 0;
  EXPECT_THAT(to_json(plan), testing::Not(HasSubstr("largest_micro_batch_tokens")));
  EXPECT_EQ(plan_from_json(to_json(plan), "plan.json"), plan);
}

TEST(Plan, HasTheNameOfItsScheduleAsItsBuilderWritesIt) {
  for (const std::string& name : schedule_names()) {
    TrainingPlan plan = two_phase_plan();
    plan.phases[0].schedule = name;
    std::string lower_case = name;
    for (char& c : lower_case) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    ASSERT_NE(lower_case, name);
    const std::string text = with(to_json(plan), "\"" + name + "\"", "\"" + lower_case + "\"");
    EXPECT_EQ(plan_from_json(text, "plan.json").phases[0].schedule, name);
  }
  EXPECT_EQ(canonical_schedule_name("steps.csv"), "steps.csv");
}

TEST(Plan, AScheduleThatNoMemoryHoldsIsRefused) {
  TrainingPlan plan = two_phase_plan();
  plan.global_batch_size = 1 << 24;
  plan.phases[0].num_micro_batches = 1 << 22;  // of four stages
  const Model model = chain_model(4);
  EXPECT_NO_THROW(validate(plan, model, "plan.json"));
  plan.phases[0].num_micro_batches = (1 << 22) + 1;
  EXPECT_THAT(
      message_of([&] { validate(plan, model, "plan.json"); }),
      HasSubstr(
          "phases[0].num_micro_batches: must be at most 16777216 when multiplied by the stages and token slices"));
}

TEST(CacheUse, ThatFindsNothingFills) {
  EXPECT_EQ(to_string(CacheUse{.on = true, .found = {{.layer = 5, .fraction = 0}}}, 5), "fill");
  EXPECT_EQ(to_string(CacheUse{.on = true, .found = {{.layer = 5, .fraction = 0.5}}}, 5), "50 % hits");
}

TEST(Plan, IsReadableAsAFile) {
  const auto text = to_json(two_phase_plan());
  EXPECT_THAT(text, testing::StartsWith(
                        "{\n \"format\": \"frostpipe.plan\",\n \"version\": 1,\n \"method\": \"pipetransformer\",\n"));
  EXPECT_THAT(text, HasSubstr("\"partition\": [{\"begin\": 0, \"end\": 6}, {\"begin\": 6, \"end\": 10}]"));
}

TEST(SamePipeline, IsThatOfPhasesWhoseWorkIsCutAndOrderedAlike) {
  const Phase phase = two_phase_plan().phases[0];
  Phase later = phase;
  later.from_step = 40;
  later.first_trainable_layer = 5;
  later.cache.on = true;
  later.predicted = {};
  EXPECT_TRUE(have_same_pipeline(phase, later));
  for (const auto change :
       {+[](Phase& other) { other.partition.back().begin = 8; }, +[](Phase& other) { other.virtual_stages = 2; },
        +[](Phase& other) { other.num_micro_batches = 4; }, +[](Phase& other) { other.schedule = "GPipe"; },
        +[](Phase& other) { other.schedule_rows = {"0F0,0B0"}; },
        +[](Phase& other) {
          other.token_slices = {24, 24};
        }}) {
    Phase other = phase;
    change(other);
    EXPECT_FALSE(have_same_pipeline(phase, other));
    EXPECT_FALSE(have_same_pipeline(other, phase));
  }
}

/// The two-phase plan with two stages per rank in its first phase: 2 x 2 stages on 2 ranks.
TrainingPlan looped_plan() {
  TrainingPlan plan = two_phase_plan();
  Phase& phase = plan.phases[0];
  phase.layout.pipeline_parallel_size = 2;
  phase.virtual_stages = 2;
  phase.schedule = "Interleaved1F1B";
  return plan;
}

TEST(Plan, WithSeveralStagesPerRankIsOfVersion2AndSurvivesItsFile) {
  const std::string text = to_json(looped_plan());
  EXPECT_THAT(text, testing::StartsWith("{\n \"format\": \"frostpipe.plan\",\n \"version\": 2,\n"));
  EXPECT_THAT(text, HasSubstr("\"schedule\": \"Interleaved1F1B\",\n   \"virtual_stages\": 2,\n"));
  EXPECT_EQ(plan_from_json(text, "plan.json"), looped_plan());
  EXPECT_NO_THROW(validate(looped_plan(), chain_model(4), "plan.json"));
}

TEST(Plan, WithOneStagePerRankIsWrittenAsVersion1AndReadOfBoth) {
  const std::string text = to_json(two_phase_plan());
  EXPECT_THAT(text, testing::Not(HasSubstr("virtual_stages")));
  EXPECT_EQ(plan_from_json(with(text, "\"version\": 1", "\"version\": 2"), "plan.json"), two_phase_plan());
}

TEST(Plan, WithSequenceParallelismIsOfVersion2AndNeedsTensorRanks) {
  TrainingPlan plan = two_phase_plan();
  plan.phases[0].layout.sequence_parallel = true;
  const std::string text = to_json(plan);
  EXPECT_THAT(text, testing::StartsWith("{\n \"format\": \"frostpipe.plan\",\n \"version\": 2,\n"));
  EXPECT_EQ(plan_from_json(text, "plan.json"), plan);
  try {
    validate(plan, chain_model(4), "plan.json");
    FAIL() << "one tensor rank has nothing to split";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("phases[0].layout.sequence_parallel: must be false where "
                                        "tensor_parallel_size is 1"));
  }
}

TEST(Plan, ScheduleOfAPhaseHasItsStagesPerRank) {
  EXPECT_EQ(schedule_of(looped_plan().phases[0]),
            lower(interleaved_one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 8, .virtual_stages = 2})));
  Phase frozen = looped_plan().phases[0];
  frozen.first_trainable_layer = 5;  // stage 2 of [0,3) [3,5) [5,7) [7,10)
  frozen.schedule = "LoopedBFS";
  EXPECT_EQ(
      schedule_of(frozen),
      lower(looped_bfs(
          {.pipeline_parallel_size = 2, .num_micro_batches = 8, .first_trainable_stage = 2, .virtual_stages = 2})));
}

TEST(Plan, ScheduleOfAPhaseIsLoweredAndKnowsItsFrozenStages) {
  const TrainingPlan plan = two_phase_plan();
  const Schedule first = schedule_of(plan.phases[0]);
  EXPECT_EQ(first, lower(one_f_one_b({.pipeline_parallel_size = 4, .num_micro_batches = 8})));
  Phase frozen = plan.phases[1];
  frozen.first_trainable_layer = 7;  // in [6, 10): stage 1
  EXPECT_EQ(schedule_of(frozen),
            lower(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 4, .first_trainable_stage = 1})));
}

TEST(Plan, PhaseAtIsTheLastThatHasBegun) {
  const TrainingPlan plan = two_phase_plan();  // from steps 0 and 40
  EXPECT_EQ(phase_at(plan, 0), 0);
  EXPECT_EQ(phase_at(plan, 39), 0);
  EXPECT_EQ(phase_at(plan, 40), 1);
  EXPECT_EQ(phase_at(plan, 99), 1);
}

TEST(Plan, IsOfOneModel) {
  EXPECT_NO_THROW(require_same_model(two_phase_plan(), chain_model(4), "plan.json"));
  EXPECT_THAT(message_of([] { require_same_model(two_phase_plan(), chain_model(5), "plan.json"); }),
              HasSubstr("plan.json: was made for another model: example with fingerprint"));
}

class BadPlan : public testing::Test {
 protected:
  template <class Change>
  static std::string error_of(Change change) {
    TrainingPlan plan = two_phase_plan();
    EXPECT_NO_THROW(validate(plan, chain_model(4), "plan.json"));
    change(plan);
    return message_of([&] { validate(plan, chain_model(4), "plan.json"); });
  }
  static std::string read_error_of(const std::string& text) {
    return message_of([&] { plan_from_json(text, "plan.json"); });
  }
  const std::string good_ = to_json(two_phase_plan());
};

TEST_F(BadPlan, PhasesThatDoNotFollowEachOther) {
  EXPECT_EQ(error_of([](auto& p) { p.phases.clear(); }), "plan.json: phases: must hold at least one phase, is []");
  EXPECT_EQ(error_of([](auto& p) { p.phases[0].from_step = 1; }), "plan.json: phases[0].from_step: must be 0, is 1");
  EXPECT_EQ(error_of([](auto& p) { p.phases[1].from_step = 0; }),
            "plan.json: phases[1].from_step: must be > 0, where the phase before starts, is 0");
  EXPECT_EQ(error_of([](auto& p) { p.phases[1].from_step = 100; }),
            "plan.json: phases[1].from_step: must be < 100, the number of steps, is 100");
  EXPECT_EQ(error_of([](auto& p) { p.phases[0].first_trainable_layer = 6; }),
            "plan.json: phases[1].first_trainable_layer: must be >= 6: frozen layers are never unfrozen, is 5");
  EXPECT_EQ(error_of([](auto& p) { p.phases[1].first_trainable_layer = 10; }),
            "plan.json: phases[1].first_trainable_layer: must be >= 0 and <= 9: the head always trains, is 10");
}

TEST_F(BadPlan, PartitionsThatDoNotCoverTheModel) {
  EXPECT_EQ(error_of([](auto& p) { p.phases[1].partition[1].end = 9; }),
            "plan.json: phases[1].partition[1].end: must be 10: the last stage ends with the last layer, is 9");
  EXPECT_EQ(error_of([](auto& p) {
              p.phases[1].partition = {{0, 10}};
            }),
            "plan.json: phases[1].partition: must have 2 stages, the pipeline-parallel size, is 1 stage");
}

TEST_F(BadPlan, SchedulesThatCannotHaveTheirStagesOrMicroBatches) {
  const auto error_of_looped = [](auto change) {
    TrainingPlan plan = looped_plan();
    change(plan.phases[0]);
    return message_of([&] { validate(plan, chain_model(4), "plan.json"); });
  };
  EXPECT_EQ(
      error_of_looped([](Phase& phase) { phase.virtual_stages = 3; }),
      "plan.json: phases[0].partition: must have 6 stages, the pipeline-parallel size of 2 times 3 per rank, is 4 "
      "stages");
  EXPECT_EQ(error_of_looped([](Phase& phase) { phase.virtual_stages = 2147483647; }),
            "plan.json: phases[0].partition: must have 4294967294 stages, the pipeline-parallel size of 2 times "
            "2147483647 per rank, is 4 stages");
  EXPECT_EQ(error_of_looped([](Phase& phase) { phase.virtual_stages = 0; }),
            "plan.json: phases[0].virtual_stages: must be >= 1, is 0");
  EXPECT_EQ(
      error_of_looped([](Phase& phase) { phase.num_micro_batches = 7; }),
      "plan.json: phases[0].schedule: schedule Interleaved1F1B: number of micro-batches: must be a multiple of the "
      "rounds, m / p rounded down, such as 6 or 8, is 7");
  EXPECT_EQ(error_of_looped([](Phase& phase) { phase.schedule = "1F1B"; }),
            "plan.json: phases[0].schedule: schedule 1F1B: stages per rank: must be 1, is 2");
  EXPECT_EQ(read_error_of(with(to_json(looped_plan()), "\"virtual_stages\": 2", "\"virtual_stages\": 0")),
            "plan.json: phases[0].virtual_stages: must be >= 1, is 0");
  EXPECT_THAT(read_error_of(with(to_json(looped_plan()), "\"version\": 2", "\"version\": 3")), HasSubstr("version"));
}

TEST_F(BadPlan, CachesWithoutRoomOrUse) {
  EXPECT_EQ(
      error_of([](auto& p) { p.phases[1].cache.on = true; }),
      "plan.json: phases[1].cache.on: must be false where the plan's cache.memory_bytes and disk_bytes are 0, is true");
  EXPECT_EQ(error_of([](auto& p) {
              p.cache.memory_bytes = 1;
              p.phases[0].cache.on = true;
            }),
            "plan.json: phases[0].cache.on: must be false where nothing is frozen: there is nothing to cache, is true");
}

TEST_F(BadPlan, LayoutsThatDoNotFitTheWorld) {
  EXPECT_EQ(error_of([](auto& p) { p.phases[1].layout.data_parallel_size = 3; }),
            "plan.json: phases[1].layout: must use at most 4 ranks, the world size, is 2 x 3 x 1 = 6");
  EXPECT_EQ(
      error_of([](auto& p) { p.phases[1].layout.data_parallel_size = 2147483647; }),
      "plan.json: phases[1].layout: must use at most 4 ranks, the world size, is 2 x 2147483647 x 1 = 4294967294");
  EXPECT_EQ(error_of([](auto& p) {
              p.phases[1].layout.placement = {0, 1, 2};
            }),
            "plan.json: phases[1].layout.placement: must be empty or name 4 ranks, is 3 ranks");
  EXPECT_EQ(error_of([](auto& p) {
              p.phases[1].layout.placement = {0, 1, 2, 4};
            }),
            "plan.json: phases[1].layout.placement[3]: must be >= 0 and < 4, the world size, is 4");
  EXPECT_EQ(error_of([](auto& p) {
              p.phases[1].layout.placement = {0, 1, 2, 1};
            }),
            "plan.json: phases[1].layout.placement[3]: must name every rank at most once, is 1");
  EXPECT_THAT(error_of([](auto& p) { p.phases[0].layout.tensor_parallel_size = 2; }),
              HasSubstr("plan.json: phases[0].layout: must use at most 4 ranks, the world size, is 4 x 1 x 2 = 8"));
  EXPECT_THAT(error_of([](auto& p) { p.phases[0].predicted.peak_memory_bytes.pop_back(); }),
              HasSubstr("must be empty or have 4 entries, one per rank, is 3 entries"));
}

TEST_F(BadPlan, UnknownNames) {
  EXPECT_EQ(error_of([](auto& p) { p.phases[1].schedule = "zigzag"; }),
            "plan.json: phases[1].schedule: must be one of GPipe, 1F1B, Interleaved1F1B, LoopedBFS, ZB-H1, ZB-H2, "
            "InterleavedZeroBubble, ZBVZeroBubble, DualPipeV, PipeDream-2BW, TeraPipe, Seq1F1B, is \"zigzag\"");
  EXPECT_EQ(read_error_of(with(good_, "\"optimizer\": \"adamw\"", "\"optimizer\": \"lion\"")),
            "plan.json: optimizer: must be adamw or sgd, is \"lion\"");
  EXPECT_EQ(read_error_of(with(good_, "\"dtype\": \"float32\"", "\"dtype\": \"int3\"")),
            "plan.json: dtype: must be float32, float64 or bfloat16, is \"int3\"");
  EXPECT_EQ(read_error_of(with(good_, "\"cache\": {\"dtype\": \"float32\"", "\"cache\": {\"dtype\": \"float64\"")),
            "plan.json: cache.dtype: must be float32 or bfloat16, is \"float64\"");
  for (const std::string word : {"float16", "float32"})
    EXPECT_EQ(read_error_of(with(good_, "\"partitioner\"", "\"frozen_dtype\": \"" + word + "\", \"partitioner\"")),
              "plan.json: frozen_dtype: must be bfloat16, or left out for the other layers' type, is \"" + word + "\"");
}

TEST_F(BadPlan, FieldsOfAFileThatBreakARule) {
  EXPECT_EQ(read_error_of(with(good_, "\"end\": 6", "\"end\": \"x\"")),
            "plan.json: phases[1].partition[0].end: must be an integer, is \"x\"");
  EXPECT_EQ(read_error_of(with(good_, "\"iteration_ns\": 123456789012345", "\"iteration_ns\": -1")),
            "plan.json: phases[0].predicted.iteration_ns: must be >= 0, is -1");
  EXPECT_EQ(read_error_of(with(good_, "\"num_micro_batches\": 8", "\"num_micro_batches\": 0")),
            "plan.json: phases[0].num_micro_batches: must be >= 1, is 0");
  EXPECT_EQ(read_error_of(with(good_, "\"memory_limited\": true", "\"memory_limited\": 1")),
            "plan.json: memory_limited: must be true or false, is 1");
  EXPECT_EQ(read_error_of(with(good_, "\"phases\": [", "\"phases\": [[],")),
            "plan.json: phases[0]: must be an object, is []");
  EXPECT_EQ(read_error_of(with(good_, "\"partition\":", "\"partitions\":")),
            "plan.json: phases[0].partitions: is not a known field; did you mean \"partition\"?");
  EXPECT_EQ(read_error_of(with(good_, "\"num_steps\": 100,", "")), "plan.json: has no field \"num_steps\"");
}

}  // namespace
}  // namespace frostpipe
