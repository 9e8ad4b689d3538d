// Oracle: the written steps, each once by its last line.
#include "executor/run_folder/step_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;

StepRecord record(int step, double loss = 0.1) {
  return {.step = step,
          .loss = loss,
          .learning_rate = 1.0 / 3,
          .samples = 8,
          .tokens = 22,
          .iteration_ns = 1'000'000 + step};
}

using StepLogTest = test::ScratchFolderTest;

TEST_F(StepLogTest, StepsOfSeveralProcessesComeBackToTheBit) {
  StepLog one(folder_), other(folder_);
  for (int step = 0; step < 6; ++step) EXPECT_TRUE((step % 2 ? one : other).write({record(step, 1.0 / (3 + step))}));
  std::vector<StepRecord> expected;
  for (int step = 0; step < 6; ++step) expected.push_back(record(step, 1.0 / (3 + step)));
  EXPECT_EQ(StepLog(folder_).read(6), expected);
  EXPECT_TRUE(one.has_written());
  EXPECT_FALSE(StepLog(folder_).has_written());
}

TEST_F(StepLogTest, AStepThatIsDoneAgainCountsOnce) {
  StepLog log(folder_);
  EXPECT_TRUE(log.write({record(0), record(1), record(2), record(3)}));
  EXPECT_TRUE(log.write({record(1, 0.7)}));
  EXPECT_TRUE(log.write({record(2, 0.8)}));
  EXPECT_THAT(log.read(3), ElementsAre(record(0), record(1, 0.7), record(2, 0.8)));
}

TEST_F(StepLogTest, ATornLineCostsItsStepAlone) {
  EXPECT_TRUE(StepLog(folder_).write({record(0), record(1), record(2)}));
  const std::filesystem::path path = folder_ / "steps.jsonl";
  const std::string whole = read_text_file(path);
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last_line; size + 1 < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    EXPECT_THAT(StepLog(folder_).read(9), ElementsAre(record(0), record(1))) << size;
    EXPECT_TRUE(StepLog(folder_).write({record(3)}));
    EXPECT_THAT(StepLog(folder_).read(9), ElementsAre(record(0), record(1), record(3))) << size;
  }
}

TEST_F(StepLogTest, AnotherProcessLeavesNoEmptyLine) {
  EXPECT_TRUE(StepLog(folder_).write({record(0)}));
  EXPECT_TRUE(StepLog(folder_).write({record(1)}));
  EXPECT_EQ(read_text_file(folder_ / "steps.jsonl"), to_json_line(record(0)) + "\n" + to_json_line(record(1)) + "\n");
}

// Reading a pipe in its place would wait, and a link to an endless device would fill the memory.
TEST_F(StepLogTest, OnlyARegularFileIsRead) {
  const std::filesystem::path path = folder_ / "steps.jsonl";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(StepLog(folder_).read(9), testing::IsEmpty());
  EXPECT_FALSE(StepLog(folder_).write({record(0)}));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/zero", path);
  EXPECT_THAT(StepLog(folder_).read(9), testing::IsEmpty());
  StepLog(folder_ / "next").begin_with(folder_);
  EXPECT_THAT(StepLog(folder_ / "next").read(9), testing::IsEmpty());
}

TEST_F(StepLogTest, LossesThatAreNoNumbersComeBack) {
  EXPECT_TRUE(StepLog(folder_).write({record(0, std::numeric_limits<double>::infinity())}));
  EXPECT_THAT(StepLog(folder_).read(1), ElementsAre(record(0, std::numeric_limits<double>::infinity())));
}

TEST_F(StepLogTest, ARunBeginsWithNothingOrWithAnothersSteps) {
  EXPECT_TRUE(StepLog(folder_ / "other").write({record(0), record(1)}));
  StepLog log(folder_);
  EXPECT_TRUE(log.write({record(0, 9)}));
  log.begin_with(folder_ / "other");
  EXPECT_THAT(log.read(9), ElementsAre(record(0), record(1)));
  log.begin_with(folder_ / "nowhere");
  EXPECT_THAT(log.read(9), ElementsAre());
  EXPECT_TRUE(log.write({record(0, 9)}));
  log.begin_anew();
  EXPECT_THAT(log.read(9), ElementsAre());
}

TEST_F(StepLogTest, ALogThatCannotBeWrittenSaysSo) {
  std::filesystem::create_directories(folder_ / "steps.jsonl");
  StepLog log(folder_);
  EXPECT_FALSE(log.write({record(0)}));
  EXPECT_FALSE(log.has_written());
  EXPECT_THAT(log.read(9), ElementsAre());
}

}  // namespace
}  // namespace frostpipe
