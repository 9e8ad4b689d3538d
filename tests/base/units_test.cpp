#include "base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

TEST(FormatDuration, HasThreeSignificantDigits) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(12), "12 ns");
  EXPECT_EQ(format_duration(850'000), "850 us");
  EXPECT_EQ(format_duration(12'345'678), "12.3 ms");
  EXPECT_EQ(format_duration(4'100'000'000), "4.10 s");
  EXPECT_EQ(format_duration(120'000'000'000), "120 s");
  EXPECT_EQ(format_duration(3600LL * 1'000'000'000), "60.0 min");
  EXPECT_EQ(format_duration(48LL * 3600 * 1'000'000'000), "48.0 h");
  EXPECT_EQ(format_duration(-1'500'000), "-1.50 ms");
}

TEST(FormatDuration, ChangesTheUnitWhereRoundingWouldNeedAFourthDigit) {
  EXPECT_EQ(format_duration(999'400), "999 us");
  EXPECT_EQ(format_duration(999'600), "1.00 ms");
  EXPECT_EQ(format_duration(9'996'000), "10.0 ms");
  EXPECT_EQ(format_duration(99'960'000), "100 ms");
}

TEST(FormatBytes, CountsInPowersOf1024) {
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(384LL << 20), "384 MiB");
  EXPECT_EQ(format_bytes(3LL << 29), "1.50 GiB");
  EXPECT_EQ(format_bytes(1000LL << 20), "0.977 GiB");
}

TEST(FormatFlops, CountsInPowersOf1000) {
  EXPECT_EQ(format_flops(850), "850 FLOP");
  EXPECT_EQ(format_flops(16.06e9), "16.1 GFLOP");
  EXPECT_EQ(format_flops(4.12e14), "412 TFLOP");
  EXPECT_EQ(format_flops(2e21), "2000 EFLOP");
}

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("4096", "--memory"), 4096);
  EXPECT_EQ(parse_bytes("384MiB", "--memory"), 384LL << 20);
  EXPECT_EQ(parse_bytes("1.5GiB", "--memory"), 3LL << 29);
  EXPECT_EQ(parse_bytes("2GB", "--memory"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("2 gb", "--memory"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("0", "--memory"), 0);
}

TEST(ParseBytes, NamesThePlaceOfWhatItCannotRead) {
  for (const char* text : {"", "GiB", "-1MiB", "4 parsecs", "nan", "inf", "1e3", "99999999999GiB", "0x10", "1.2.3"}) {
    try {
      parse_bytes(text, "--memory");
      ADD_FAILURE() << text;
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("--memory: must be a number of bytes"));
      EXPECT_THAT(error.what(), testing::HasSubstr("\"" + std::string(text) + "\""));
    }
  }
}

TEST(Check, FailsWithTheReasonItShouldHold) {
  try {
    FROSTPIPE_CHECK(1 == 2, "numbers differ");
    ADD_FAILURE();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("1 == 2"));
    EXPECT_THAT(error.what(), testing::HasSubstr("numbers differ"));
  }
}

TEST(ParseDuration, ReadsUnitsAndNamesThePlaceOfAnythingElse) {
  EXPECT_EQ(parse_duration("90s", "x"), 90'000'000'000);
  EXPECT_EQ(parse_duration("1.5h", "x"), 5'400'000'000'000);
  EXPECT_EQ(parse_duration("12min", "x"), parse_duration("12m", "x"));
  EXPECT_EQ(parse_duration("250ms", "x"), 250'000'000);
  EXPECT_EQ(parse_duration("1.5us", "x"), 1'500);
  EXPECT_EQ(parse_duration("7ns", "x"), 7);
  for (const char* text :
       {"", "12", "s", "-1s", "0s", "0.5ns", "nan", "infs", "1e3s", "1e30h", "3  s", "3 parsecs", "9999999999h"})
    EXPECT_THROW(parse_duration(text, "--deadline"), InvalidInput) << text;
}

TEST(ParseDuration, ReadsWhatFormatDurationWrites) {
  for (const Nanoseconds duration :
       {1LL, 999LL, 1'500LL, 12'300'000LL, 4'000'000'000LL, 90'000'000'000LL, 5'400'000'000'000LL})
    EXPECT_EQ(parse_duration(format_duration(duration), "x"), duration) << format_duration(duration);
}

}  // namespace
}  // namespace frostpipe
