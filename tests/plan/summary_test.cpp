#include "plan/summary.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <regex>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::with;

Span span_of(int rank, int step, const char* action, Nanoseconds begin, Nanoseconds end) {
  return {.rank = rank, .step = step, .action = parse_action(action, ""), .begin_ns = begin, .end_ns = end};
}

/// One iteration of GPipe with p = 2, m = 2, F = 10, B = 20 and free messages: (m + p - 1) (F + B) = 90.
Trace gpipe_trace(int steps = 1) {
  Trace trace{.num_ranks = 2, .spans = {}, .events = {}};
  for (int step = 0; step < steps; ++step) {
    const Nanoseconds t = 100 * step;
    for (const auto& [rank, action, begin, end] :
         std::vector<std::tuple<int, const char*, int, int>>{{0, "0F0", 0, 10},
                                                             {0, "0F1", 10, 20},
                                                             {0, "0RECV_B0", 20, 50},
                                                             {0, "0B0", 50, 70},
                                                             {0, "0B1", 70, 90},
                                                             {1, "1F0", 10, 20},
                                                             {1, "1F1", 20, 30},
                                                             {1, "1B0", 30, 50},
                                                             {1, "1B1", 50, 70}})
      trace.spans.push_back(span_of(rank, step, action, t + begin, t + end));
  }
  return trace;
}

const Schedule kSchedule = lower(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 2}));

TEST(Summarize, HasTheClosedFormsOfGPipe) {
  const auto summary = summarize(gpipe_trace(), 0, kSchedule);
  EXPECT_EQ(summary.makespan_ns, 90);
  EXPECT_EQ(summary.iteration_ns, 90);
  EXPECT_EQ(summary.longest_rank_span_ns, 90);
  EXPECT_DOUBLE_EQ(summary.bubble_overhead, 1. / 2);  // (p - 1) / m
  EXPECT_DOUBLE_EQ(summary.bubble_fraction, 1. / 3);  // (p - 1) / (m + p - 1)
  EXPECT_THAT(summary.busy_ns, testing::ElementsAre(60, 60));
  EXPECT_THAT(summary.peak_in_flight, testing::ElementsAre(2, 2));
}

TEST(Summarize, IterationTimeIsThePeriodWhereThereAreSeveralSteps) {
  const auto summary = summarize(gpipe_trace(5), 3, kSchedule);
  EXPECT_EQ(summary.makespan_ns, 90);
  EXPECT_EQ(summary.iteration_ns, 100);
}

TEST(Summarize, RanksThatTakeNoPartAreNoBubble) {
  Trace trace = gpipe_trace();
  trace.num_ranks = 4;
  const auto summary = summarize(trace, 0, kSchedule);
  EXPECT_DOUBLE_EQ(summary.bubble_fraction, 1. / 3);
  EXPECT_THAT(summary.busy_ns, testing::ElementsAre(60, 60, 0, 0));
}

TEST(Summarize, AStepThatIsNotThereIsAnError) {
  EXPECT_EQ(message_of([] { summarize(gpipe_trace(), 4, kSchedule); }), "trace: has no spans of step 4");
}

RunSummary example_run() {
  RunSummary run;
  run.name = "elastic";
  run.method = "pipetransformer";
  run.freeze = "cap:0.5";
  run.seed = std::numeric_limits<std::uint64_t>::max();
  run.num_steps = 3;
  run.samples_per_second = 0.1 + 0.2;
  run.test_accuracy = 1. / 3;
  PhaseSummary phase;
  phase.partition = "[0,5) [5,14)";
  phase.schedule = "GPipe";
  phase.tensor_ranks = 2;
  phase.frozen_blocks = 3;
  phase.first_trainable_layer = 7;
  phase.measured_iteration_ns = 90;
  phase.measured_peak_memory_bytes = {1, 2};
  phase.measured_timeline = gpipe_trace();
  run.phases = {phase, PhaseSummary{}};
  run.decisions = {{.step = 7, .frozen_blocks = 2, .explanation = "two lines\nand \"quotes\""}};
  run.steps = {{.step = 0, .loss = 1.25, .learning_rate = 5e-5, .samples = 64, .tokens = 31, .iteration_ns = 90},
               {.step = 1, .loss = 1e-300, .learning_rate = -0.0, .samples = 64, .tokens = 31, .iteration_ns = 91}};
  run.evaluations = {{.step = 3, .accuracy = 0.9}};
  run.label_names = {"yes", "no, \xC3\xA0 la mode"};
  run.test_items = {5, 3};
  run.test_labels = {0, 1};
  run.test_predictions = {0, 0};
  return run;
}

TEST(NumStages, OfARunsPhaseAreAllOfThePipeline) {
  PhaseSummary phase;
  phase.stages = 2;
  EXPECT_EQ(num_stages(phase), 2);  // the partition is not known yet
  phase.partition = "[0,2) [2,5) [5,8) [8,10)";
  EXPECT_EQ(num_stages(phase), 4);
}

// By hand: the nearest ranks of 1 ... 11 ms at 0.1, 0.5 and 0.9 are the 2nd, 6th and 10th; 8 samples in each of 11
// steps, which take 66 ms in all.
TEST(Measure, HasQuantilesOfTheStepsAndSamplesOverTheirTime) {
  std::vector<StepRecord> steps;
  for (const int milliseconds : {3, 1, 2, 11, 10, 4, 6, 5, 9, 8, 7})
    steps.push_back({.samples = 8, .tokens = 20 + milliseconds, .iteration_ns = milliseconds * 1'000'000});
  PhaseSummary phase;
  measure(phase, steps);
  EXPECT_EQ(phase.measured_iteration_low_ns, 2'000'000);
  EXPECT_EQ(phase.measured_iteration_ns, 6'000'000);
  EXPECT_EQ(phase.measured_iteration_high_ns, 10'000'000);
  EXPECT_EQ(phase.tokens, 26);
  EXPECT_DOUBLE_EQ(phase.samples_per_second, 88 / 0.066);
}

TEST(StepRecord, SurvivesItsLine) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    const StepRecord step{.step = i,
                          .loss = std::bit_cast<double>(random() & 0x7fefffffffffffff),
                          .learning_rate = 1. / (i + 1),
                          .samples = 8,
                          .tokens = 22,
                          .iteration_ns = 1'000'000'007};
    const std::string line = to_json_line(step);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(step_from_json_line(line), step);
    EXPECT_EQ(step_from_json_line(line.substr(0, random() % line.size())), std::nullopt);
  }
  for (const char* other : {"", "{}", "[]", "7", "{\"step\": 0}"})
    EXPECT_EQ(step_from_json_line(other), std::nullopt) << other;
}

TEST(RunSummary, SurvivesItsFile) {
  const RunSummary run = example_run();
  EXPECT_EQ(run_from_json(to_json(run), "run.json"), run);
  EXPECT_EQ(run_from_json(to_json(RunSummary{}), "run.json"), RunSummary{});
}

TEST(RunSummary, OfANetSurvivesItsFile) {
  RunSummary run = example_run();
  run.phases[0].devices = 2;
  run.net = {.net = "resnet", .device_classes = {"cpu", "cpu / 2"}};
  EXPECT_EQ(run_from_json(to_json(run), "run.json"), run);
}

TEST(RunSummary, OfANetInItsFormerFormIsRefusedWithWhatToDo) {
  EXPECT_EQ(
      message_of([] { run_from_json(R"({"format": "frostpipe.net_run", "version": 1, "name": "a"})", "r.json"); }),
      "r.json: is the summary of a net's run as frostpipe wrote it before nets had the summary of all runs: "
      "nothing reads it any more. Train the net again, into another folder");
}

/// Returns the text of a run in version 1, where frozen_blocks is called frozen_layers.
std::string version_1_of(const RunSummary& run) {
  const std::string text = with(to_json(run), "\"version\": 2", "\"version\": 1");
  return std::regex_replace(text, std::regex("\"frozen_blocks\""), "\"frozen_layers\"");
}

TEST(RunSummary, FilesOfVersion1AreRead) {
  EXPECT_EQ(run_from_json(version_1_of(example_run()), "run.json"), example_run());
}

TEST(RunSummary, ErrorsNameFieldsAsTheFilesVersionCallsThem) {
  const auto error_of = [](const std::string& text) { return message_of([&] { run_from_json(text, "r.json"); }); };
  const std::string before = version_1_of(example_run()), now = to_json(example_run());
  EXPECT_EQ(error_of(with(before, "\"frozen_layers\": 3", "\"frozen_layers\": -3")),
            "r.json: phases[0].frozen_layers: must be >= 0, is -3");
  EXPECT_EQ(error_of(with(now, "\"frozen_blocks\": 3", "\"frozen_blocks\": -3")),
            "r.json: phases[0].frozen_blocks: must be >= 0, is -3");
  EXPECT_THAT(error_of(with(now, "\"version\": 2", "\"version\": 1")),
              testing::StartsWith("r.json: phases[0].frozen_blocks: is not a known field"));
  EXPECT_EQ(error_of(with(now, "\"version\": 2", "\"version\": 3")),
            "r.json: version: was written by a newer frostpipe: this one reads versions up to 2, the file has 3");
}

TEST(RunSummary, RandomDoublesSurviveExactly) {
  std::mt19937_64 random(4);
  RunSummary run = example_run();
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) run.steps.push_back({.step = i, .loss = value});
  }
  EXPECT_EQ(run_from_json(to_json(run), "run.json"), run);
}

TEST(RunSummary, ADivergedRunIsWrittenToo) {
  RunSummary run = example_run();
  run.steps[0].loss = std::numeric_limits<double>::infinity();
  run.steps[1].loss = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(run_from_json(to_json(run), "run.json"), run);
  run.steps[0].loss = std::nan("");
  EXPECT_TRUE(std::isnan(run_from_json(to_json(run), "run.json").steps[0].loss));
}

TEST(RunSummary, BadFieldsAreNamed) {
  const auto good = to_json(example_run());
  const auto error_of = [](const std::string& text) { return message_of([&] { run_from_json(text, "r.json"); }); };
  EXPECT_EQ(error_of(with(good, "\"loss\": 1.25", "\"loss\": \"much\"")),
            "r.json: steps[0].loss: must be a number, is \"much\"");
  EXPECT_EQ(error_of(with(good, "\"seed\": 18446744073709551615", "\"seed\": -1")),
            "r.json: seed: must be >= 0, is -1");
  EXPECT_EQ(error_of(with(good, "\"samples_per_second\": 0.3", "\"samples_per_second\": -0.3")).substr(0, 44),
            "r.json: samples_per_second: must be >= 0, is");
  EXPECT_EQ(error_of(with(good, "\"tensor_ranks\": 2", "\"tensor_ranks\": 0")),
            "r.json: phases[0].tensor_ranks: must be >= 1, is 0");
}

}  // namespace
}  // namespace frostpipe
