// Oracle: the Chrome trace event format, read back by hand.
#include "base/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace frostpipe {
namespace {

using Json = nlohmann::json;

Timeline two_bars() {
  Timeline timeline;
  timeline.add_process(3, "rank 3");
  timeline.add_thread(3, 1, "compute");
  timeline.spans = {{.name = "plain", .process = 3, .thread = 1, .begin_ns = 1500, .end_ns = 4000},
                    {.name = "rich",
                     .category = "forward",
                     .process = 3,
                     .thread = 1,
                     .begin_ns = 4000,
                     .end_ns = 4000,
                     .color = "good",
                     .values = {{"step", 7}}}};
  return timeline;
}

TEST(Timeline, IsWrittenInMicrosecondsWithNamesAndOnlyTheFieldsThatItHas) {
  const std::string text = to_chrome_trace(two_bars());
  EXPECT_EQ(Json::parse(text), Json::parse(R"({
    "displayTimeUnit": "ms",
    "traceEvents": [
      {"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "rank 3"}},
      {"ph": "M", "name": "process_sort_index", "pid": 3, "tid": 0, "args": {"sort_index": 3}},
      {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1, "args": {"name": "compute"}},
      {"ph": "X", "name": "plain", "pid": 3, "tid": 1, "ts": 1.5, "dur": 2.5},
      {"ph": "X", "name": "rich", "pid": 3, "tid": 1, "ts": 4.0, "dur": 0.0, "cat": "forward", "cname": "good",
       "args": {"step": 7}}
    ]})"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(Timeline, OfNothingIsStillATrace) {
  EXPECT_TRUE(Json::parse(to_chrome_trace(Timeline())).at("traceEvents").empty());
}

}  // namespace
}  // namespace frostpipe
