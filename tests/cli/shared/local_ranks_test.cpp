// Oracle: expected records, made by hand, of what each process writes. The ranks are copies of this program.
#include "cli/shared/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;

constexpr const char* kDiary = "FROSTPIPE_LOCAL_RANKS_DIARY";
constexpr const char* kFailingRank = "FROSTPIPE_LOCAL_RANKS_FAILS";
constexpr const char* kWritingRank = "FROSTPIPE_LOCAL_RANKS_IS_KILLED_WHILE_IT_WRITES";

/// Appends one whole line to the test's record.
void note(const std::string& line) { std::ofstream(std::getenv(kDiary), std::ios::app) << line + "\n" << std::flush; }

int exit_code_of(const RankedCommand& command) {
  try {
    return run_on_ranks(command);
  } catch (const RuntimeFailure&) {
    return 1;
  }
}

RankedCommand command_of(int num_ranks) {
  return {.num_ranks = num_ranks,
          .work =
              [](Membership& membership) {
                const RankEnvironment self = membership.next_round()->self;
                note("rank " + std::to_string(self.rank) + " of " + std::to_string(self.world_size));
                if (std::to_string(self.rank) == std::getenv(kFailingRank)) throw RuntimeFailure("as told");
                if (const char* const rank = std::getenv(kWritingRank); rank && std::to_string(self.rank) == rank) {
                  const AtomicFile unfinished(std::filesystem::path(std::getenv(kDiary)).parent_path() / "result");
                  raise(SIGKILL);
                }
              },
          .print_result = [] { note("result"); }};
}

/// Runs before gtest's main, in a process that a launcher of these tests has started.
[[maybe_unused]] const bool kIsNoRank = [] {
  if (std::getenv(kDiary) && std::getenv("RANK")) {
    const std::string own = read_text_file("/proc/self/cmdline");
    note("called " + own.substr(own.find('\0') + 1));
    _exit(exit_code_of(command_of(0)));
  }
  return true;
}();

class LocalRanks : public test::ScratchFolderTest {
 protected:
  LocalRanks() {
    setenv(kDiary, file("diary").c_str(), 1);
    setenv(kFailingRank, "none", 1);
  }
  ~LocalRanks() override {
    unsetenv(kDiary);
    unsetenv(kFailingRank);
    unsetenv(kWritingRank);
  }
  /// The record, without the processes' command lines.
  std::vector<std::string> diary() const {
    std::vector<std::string> lines;
    std::ifstream input(folder_ / "diary");
    for (std::string line; std::getline(input, line);)
      if (!line.starts_with("called ")) lines.push_back(line);
    return lines;
  }
  int num_files() const {
    return static_cast<int>(std::ranges::distance(std::filesystem::directory_iterator(folder_)));
  }
  /// The same if another launcher has started this rank.
  std::vector<std::string> diary_of_rank(int rank) const {
    EXPECT_TRUE(test::holds_in_a_child([&] {
      for (const auto& [name, value] : {std::pair("WORLD_SIZE", 2), {"LOCAL_RANK", rank}, {"MASTER_PORT", 1}})
        setenv(name, std::to_string(value).c_str(), 1);
      setenv("RANK", std::to_string(rank).c_str(), 1);
      return run_on_ranks(command_of(2)) == 0;
    }));
    return diary();
  }
};

TEST_F(LocalRanks, DoTheWorkOnceEachAndThenTheLauncherPrints) {
  EXPECT_EQ(run_on_ranks(command_of(2)), 0);
  std::vector<std::string> lines = diary();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines.back(), "result");
  std::sort(lines.begin(), lines.end());
  EXPECT_THAT(lines, ElementsAre("rank 0 of 2", "rank 1 of 2", "result"));
}

TEST_F(LocalRanks, AreCalledAsTheirLauncherIs) {
  run_on_ranks(command_of(1));
  const std::string own = read_text_file("/proc/self/cmdline");
  const std::string arguments = own.substr(own.find('\0') + 1);
  EXPECT_THAT(read_text_file(folder_ / "diary"), testing::StartsWith("called " + arguments + "\n"));
}

TEST_F(LocalRanks, WhereOneFailsNothingIsPrinted) {
  setenv(kFailingRank, "1", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_on_ranks(command_of(2)), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("rank 1"));
  EXPECT_THAT(diary(), testing::Not(testing::Contains("result")));
}

TEST_F(LocalRanks, KilledWhileTheyWriteLeaveNoUnfinishedFile) {
  setenv(kWritingRank, "1", 1);
  RankedCommand command = command_of(2);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_on_ranks(command), 1);
  EXPECT_EQ(num_files(), 2) << "the record and the unfinished file";
  command.folders = {folder_, folder_ / "missing"};
  EXPECT_EQ(run_on_ranks(command), 1);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(num_files(), 1);
}

TEST_F(LocalRanks, OfAnotherLaunchersJobOnlyTheFirstPrints) {
  EXPECT_THAT(diary_of_rank(1), ElementsAre("rank 1 of 2"));
  EXPECT_THAT(diary_of_rank(0), ElementsAre("rank 1 of 2", "rank 0 of 2", "result"));
}

TEST_F(LocalRanks, AreNotStartedWhereTheSystemAllowsTooLittle) {
  RankedCommand command = command_of(2);
  command.needs.file_bytes = 2000;
  command.needs.file = "model.safetensors";
  EXPECT_TRUE(test::holds_with_files_of(1000, [&] {
    try {
      run_on_ranks(command);
    } catch (const InvalidInput& error) {
      return std::string(error.what()).starts_with("limit of a file's size (ulimit -f)");
    }
    return false;
  }));
  EXPECT_THAT(diary(), ElementsAre());
}

}  // namespace
}  // namespace frostpipe
