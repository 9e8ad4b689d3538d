#include "cli/report/traces_side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/report/traces.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

nlohmann::json events_of(const std::vector<NamedTrace>& traces) {
  return nlohmann::json::parse(to_chrome_trace(traces)).at("traceEvents");
}

TEST(ChromeTrace, GivesEveryRankOfEveryTraceAProcess) {
  std::map<int, std::string> names;
  for (const auto& event : events_of({{.name = "predicted", .trace = test::two_rank_trace()},
                                      {.name = "measured", .trace = test::two_rank_trace()}}))
    if (event.at("name") == "process_name") names[event.at("pid")] = event.at("args").at("name");
  EXPECT_THAT(names, ElementsAre(Pair(1, "predicted: rank 0"), Pair(2, "predicted: rank 1"),
                                 Pair(3, "measured: rank 0"), Pair(4, "measured: rank 1")));
}

TEST(ChromeTrace, KeepsEverySpanOnceInMicroseconds) {
  int spans = 0;
  for (const auto& event : events_of({{.name = "one", .trace = test::two_rank_trace()}})) {
    if (event.at("ph") != "X") continue;
    ++spans;
    if (event.at("name") != "1F0") continue;
    EXPECT_EQ(event.at("pid"), 2);
    EXPECT_DOUBLE_EQ(event.at("ts").get<double>(), 6000);
    EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 4000);
  }
  EXPECT_EQ(spans, 3);
}

TEST(ChromeTrace, OfNothingIsStillATrace) { EXPECT_TRUE(events_of({}).empty()); }

}  // namespace
}  // namespace frostpipe
