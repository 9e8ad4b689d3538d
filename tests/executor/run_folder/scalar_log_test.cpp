// Oracle: the record format and the protocol buffer read back by hand, and the published check value of CRC-32C.
#include "executor/run_folder/scalar_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace frostpipe {
namespace {

std::string read(const std::filesystem::path& path) {
  std::stringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

template <typename Value>
Value value_at(const std::string& text, std::size_t offset) {
  Value value;
  std::memcpy(&value, text.data() + offset, sizeof value);
  return value;
}

class ScalarLogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("frostpipe_scalars_" + std::to_string(getpid()));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

// CRC-32C of "123456789" is 0xE3069283 (RFC 3720's polynomial); masked: rotated right by 15, plus 0xA282EAD8.
TEST_F(ScalarLogTest, ARecordCarriesMaskedChecksums) {
  const std::string record = event_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4u + 9u + 4u);
  EXPECT_EQ(value_at<std::uint64_t>(record, 0), 9u);
  const std::uint32_t crc = 0xE3069283;
  EXPECT_EQ(value_at<std::uint32_t>(record, 21), ((crc >> 15) | (crc << 17)) + 0xA282EAD8);
}

TEST_F(ScalarLogTest, LinesAndEventsHoldWhatWasWritten) {
  ScalarLog(folder_).write(3, {{"loss", 0.5}, {"learning_rate", 1e-4}});
  ScalarLog(folder_).write(300, {{"loss", std::nan("")}});  // another rank goes on
  std::istringstream lines(read(folder_ / "scalars.jsonl"));
  std::string line;
  std::getline(lines, line);
  const nlohmann::json first = nlohmann::json::parse(line);
  EXPECT_EQ(first["step"], 3);
  EXPECT_EQ(first["loss"], 0.5);
  EXPECT_GT(first["wall_time"], 1.6e9);
  std::getline(lines, line);
  EXPECT_TRUE(nlohmann::json::parse(line)["loss"].is_null());

  const std::string events = read(folder_ / "tensorboard/events.out.tfevents.frostpipe");
  std::vector<std::string> records;
  for (std::size_t at = 0; at < events.size();) {
    const auto size = value_at<std::uint64_t>(events, at);
    records.push_back(events.substr(at + 12, size));
    EXPECT_EQ(event_record(records.back()), events.substr(at, size + 16));
    at += size + 16;
  }
  ASSERT_EQ(records.size(), 3u);
  EXPECT_NE(records[0].find("brain.Event:2"), std::string::npos);
  // wall_time (9 bytes), step 3 (tag 0x10), summary (tag 0x2a) of a value (0x0a) with its tag (0x0a) and a float
  // (0x15).
  EXPECT_EQ(records[1].substr(9, 2), std::string("\x10\x03", 2));
  EXPECT_EQ(records[1].substr(13, 8), std::string("\x0a\x0b\x0a\x04loss", 8));
  EXPECT_EQ(value_at<float>(records[1], 22), 0.5f);
  EXPECT_EQ(records[2].substr(9, 3), std::string("\x10\xac\x02", 3));  // 300 in two bytes

  ScalarLog(folder_).begin_anew();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "scalars.jsonl"));
  ScalarLog(folder_ / "file/below").begin_anew();
}

TEST_F(ScalarLogTest, ALinkInAFilesPlaceIsNotWrittenThrough) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "target") << "somebody's";
  std::filesystem::create_symlink(folder_ / "target", folder_ / "scalars.jsonl");
  ScalarLog(folder_).write(1, {{"loss", 1}});
  EXPECT_EQ(read(folder_ / "target"), "somebody's");
  ScalarLog(folder_).begin_anew();
  ScalarLog(folder_).write(1, {{"loss", 1}});
  EXPECT_NE(read(folder_ / "scalars.jsonl"), "");
  EXPECT_EQ(read(folder_ / "target"), "somebody's");
}

TEST_F(ScalarLogTest, FiguresThatCannotBeWrittenAreLeftOut) {
  std::ofstream(folder_) << "a file";
  ScalarLog(folder_).write(1, {{"loss", 1}});
  EXPECT_EQ(read(folder_), "a file");
}

}  // namespace
}  // namespace frostpipe
