// Oracle: times computed by hand.
#include "serving/import/arrival_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

std::vector<Nanoseconds> read_times(std::string_view text) { return import_arrival_times(text, "a.csv"); }

std::string refused_times(std::string_view text) {
  try {
    read_times(text);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(ArrivalTimes, AreSecondsCountedFromTheEarliest) {
  EXPECT_THAT(read_times("10.5\n12\r\n11.25\n\n"), ElementsAre(0, 750'000'000, 1'500'000'000));
  EXPECT_THAT(read_times("7"), ElementsAre(0));
}

TEST(ArrivalTimes, AFirstLineThatIsNoTimeNamesTheColumn) {
  EXPECT_THAT(read_times("seconds\n1\n3\n"), ElementsAre(0, 2'000'000'000));
}

TEST(ArrivalTimes, AzuresTracesHaveAColumnTimestamp) {
  EXPECT_THAT(read_times("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                         "2023-11-16 18:17:03.9799600,4808,10\n"
                         "2023-11-16 18:17:04.0319600,3180,8\n"),
              ElementsAre(0, 52'000'000));
}

TEST(ArrivalTimes, DatesGoOverMonthsAndLeapDays) {
  // From 28 February 23:59:59 to 1 March 0:00:01 is a day and two seconds in 2024, two seconds in 2023.
  EXPECT_THAT(read_times("2024-02-28T23:59:59Z\n2024-03-01T00:00:01Z\n"), ElementsAre(0, 86'402'000'000'000));
  EXPECT_THAT(read_times("2023-02-28T23:59:59\n2023-03-01T00:00:01\n"), ElementsAre(0, 2'000'000'000));
}

TEST(ArrivalTimes, TheColumnMayBeAnywhereAndInSmallLetters) {
  for (const std::string name : {"TIMESTAMP", "Timestamp", "timestamp"})
    EXPECT_THAT(read_times("id, " + name + " ,size\n1,5,9\n2,4.5,9\n"), ElementsAre(0, 500'000'000)) << name;
}

TEST(ArrivalTimes, InvalidTimesAreNamedByTheirLine) {
  EXPECT_EQ(refused_times("1\n2\nlater\n"),
            "a.csv: line 3: must be seconds, or a time such as 2023-11-16 18:17:03.98, is \"later\"");
  for (const char* bad : {"-1", "nan", "1e300", "2023-02-30 00:00:00", "2023-01-01 24:00:00", "2023-01-01 00:00:00.5x",
                          "1969-12-31 23:59:59", "2023-01-01"}) {
    EXPECT_NE(refused_times(std::string("1\n") + bad + "\n").find("a.csv: line 2: must be seconds"), std::string::npos)
        << bad;
  }
  EXPECT_EQ(refused_times("a,timestamp\n1,2\n3\n"),
            "a.csv: line 3: must be seconds, or a time such as 2023-11-16 18:17:03.98, is \"\"");
}

TEST(ArrivalTimes, AColumnThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_EQ(refused_times("a,b\n1,2\n"),
            "a.csv: line 1: has no column TIMESTAMP, only a, b; rename the column that holds the times");
  EXPECT_EQ(refused_times(""), "a.csv: holds no arrivals; give it a time per line");
  EXPECT_EQ(refused_times("at\n"), "a.csv: holds no arrivals; give it a time per line");
}

}  // namespace
}  // namespace frostpipe
