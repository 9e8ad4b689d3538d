#include "plan/trace.h"

#include <nlohmann/json.hpp>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::with;

Trace two_steps() {
  const auto span = [](int rank, int step, const char* action, Nanoseconds begin, Nanoseconds end) {
    return Span{.rank = rank, .step = step, .action = parse_action(action, ""), .begin_ns = begin, .end_ns = end};
  };
  return {.num_ranks = 2,
          .spans = {span(0, 0, "0F3", 0, 1500), span(0, 0, "0SEND_F3", 1500, 2000),
                    span(1, 1, "1RECV_F0s2@1-1", 3000, 3500), span(1, 1, "1OPTIMIZER_STEP", 3500, 4000)},
          .events = {{.rank = 1, .name = "transformation", .begin_ns = 2000, .end_ns = 3000}}};
}

TEST(Trace, SurvivesItsFile) {
  Trace trace = two_steps();
  trace.spans[0].action.overlaps_next = true;
  EXPECT_EQ(trace_from_json(to_json(trace), "t.json"), trace);
  EXPECT_EQ(trace_from_json(to_json(Trace{}), "t.json"), Trace{});
}

TEST(Trace, OfANetHasNamesOfItsOperators) {
  Trace trace = two_steps();
  EXPECT_EQ(label_of(trace, trace.spans[2]), "1RECV_F0s2@1-1");
  trace.stage_names = {"conv1", "conv1.statistics"};
  EXPECT_EQ(trace_from_json(to_json(trace), "t.json"), trace);
  EXPECT_EQ(step_of(trace, 1).stage_names, trace.stage_names);
  EXPECT_EQ(label_of(trace, trace.spans[2]), "conv1.statistics");
  EXPECT_THAT(to_chrome_trace(trace), testing::HasSubstr("\"name\":\"conv1.statistics\""));
  trace.stage_names.pop_back();
  EXPECT_EQ(message_of([&] { trace_from_json(to_json(trace), "t.json"); }),
            "t.json: spans[2].action: must be of one of the 1 stages that stage_names names, is 1RECV_F0s2@1-1");
}

TEST(Trace, StandsOneSpanPerLine) {
  EXPECT_THAT(
      to_json(two_steps()),
      testing::HasSubstr("\n  {\"rank\": 0, \"step\": 0, \"action\": \"0F3\", \"begin_ns\": 0, \"end_ns\": 1500},\n"));
}

TEST(Trace, AStepIsShiftedToItsStart) {
  const Trace step = step_of(two_steps(), 1);
  ASSERT_EQ(step.spans.size(), 2u);
  EXPECT_EQ(step.num_ranks, 2);
  EXPECT_EQ(step.spans[0].begin_ns, 0);
  EXPECT_EQ(step.spans[1].end_ns, 1000);
  EXPECT_TRUE(step.events.empty());
  EXPECT_TRUE(step_of(two_steps(), 7).spans.empty());
}

TEST(Trace, BadSpansAreNamed) {
  const auto good = to_json(two_steps());
  const auto error_of = [](const std::string& text) { return message_of([&] { trace_from_json(text, "t.json"); }); };
  EXPECT_EQ(error_of(with(good, "\"0F3\"", "\"0Q3\"")),
            "t.json: spans[0].action: must have a known kind such as F, B, SEND_F or REDUCE_GRAD after the stage, is "
            "\"0Q3\"");
  EXPECT_EQ(error_of(with(good, "\"end_ns\": 1500", "\"end_ns\": -1")), "t.json: spans[0].end_ns: must be >= 0, is -1");
  EXPECT_EQ(error_of(with(good, "\"begin_ns\": 1500", "\"begin_ns\": 2500")),
            "t.json: spans[1].end_ns: must be >= 2500, its begin_ns, is 2000");
  EXPECT_EQ(error_of(with(good, "\"num_ranks\": 2", "\"num_ranks\": 1")),
            "t.json: spans[2].rank: must be < 1, the number of ranks, is 1");
  // Readers draw a lane for each rank.
  EXPECT_EQ(error_of(with(good, "\"num_ranks\": 2", "\"num_ranks\": 2147483647")),
            "t.json: num_ranks: must be <= 1048576, is 2147483647");
  // A short file must not make a long picture.
  EXPECT_THAT(error_of(with(good, "\"num_ranks\": 2", "\"num_ranks\": 1000")),
              testing::StartsWith("t.json: num_ranks: must be <= 2"));
}

TEST(ChromeTrace, HasNamedProcessesAndCompleteEventsInMicroseconds) {
  const auto json = nlohmann::json::parse(to_chrome_trace(two_steps()));
  std::vector<std::string> process_names;
  std::vector<nlohmann::json> complete;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("name") == "process_name") process_names.push_back(event.at("args").at("name"));
    if (event.at("ph") == "X") complete.push_back(event);
  }
  EXPECT_THAT(process_names, testing::ElementsAre("rank 0", "rank 1"));
  ASSERT_EQ(complete.size(), 5u);
  EXPECT_EQ(complete[0].at("name"), "0F3");
  EXPECT_EQ(complete[0].at("cat"), "forward");
  EXPECT_EQ(complete[0].at("ts"), 0.0);
  EXPECT_EQ(complete[0].at("dur"), 1.5);
  EXPECT_EQ(complete[0].at("args").at("micro_batch"), 3);
  EXPECT_EQ(complete[1].at("cat"), "communication");
  EXPECT_EQ(complete[3].at("cat"), "update");
  EXPECT_EQ(complete[4].at("name"), "transformation");
  EXPECT_NE(complete[0].at("tid"), complete[1].at("tid"));
}

}  // namespace
}  // namespace frostpipe
