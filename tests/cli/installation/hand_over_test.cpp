// Oracle: the record of a shell script in place of the program that uses LibTorch.
#include "cli/installation/hand_over.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kErrorFile = "FROSTPIPE_HAND_OVER_ERROR";
constexpr int kCameBack = 40, kThrew = 41;

/// Runs before gtest's main, in a copy of this program that the tests have started as the tool.
[[maybe_unused]] const bool kIsNoTool = [] {
  const char* const error_file = std::getenv(kErrorFile);
  if (!error_file) return true;
  std::string own = read_text_file("/proc/self/cmdline");
  std::array<char*, 6> arguments{};
  int count = 0;
  for (std::size_t at = 0; at < own.size(); at = own.find('\0', at) + 1) arguments.at(count++) = own.data() + at;
  try {
    hand_over(count, arguments.data());
  } catch (const RuntimeFailure& error) {
    std::ofstream(error_file) << error.what();
    _exit(kThrew);
  }
  _exit(kCameBack);
}();

class HandOver : public test::ScratchFolderTest {
 protected:
  HandOver() { fs::copy_file(fs::read_symlink("/proc/self/exe"), folder_ / "tool"); }

  virtual fs::path tool() const { return folder_ / "tool"; }
  fs::path error_file() const { return folder_ / "error"; }
  /// A program beside the tool that records its arguments and ends with this exit code.
  void put_beside(const std::string& name, int exit_code, fs::perms permissions = fs::perms::owner_all) const {
    const std::string record = "echo \"$@\" > " + (folder_ / "called").string();
    fs::permissions(file(name, "#!/bin/sh\n" + record + "; exit " + std::to_string(exit_code) + "\n"), permissions);
  }
  void put_executor_beside(fs::perms permissions) const { put_beside("tool-executor", 7, permissions); }
  /// The exit status of the tool with these arguments.
  int call(const char* command, const char* argument, const char* option = nullptr, const char* value = nullptr) const {
    const pid_t child = fork();
    if (child == 0) {
      setenv(kErrorFile, error_file().c_str(), 1);
      execl(tool().c_str(), "frostpipe", command, argument, option, value, nullptr);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(HandOver, CommandsThatComputeBecomeTheProgramBesideWithTheirArguments) {
  put_executor_beside(fs::perms::owner_all);
  for (const char* const command : {"profile", "train", "evaluate"}) {
    EXPECT_EQ(call(command, "--model=two words"), 7);
    EXPECT_EQ(read_text_file(folder_ / "called"), std::string(command) + " --model=two words\n");
  }
}

TEST_F(HandOver, ServingNetsAndBenchBecomeTheirOwnPrograms) {
  put_beside("tool-serving", 8);
  put_beside("tool-nets", 9);
  put_beside("tool-bench", 10);
  EXPECT_EQ(call("serving", "plan"), 8);
  EXPECT_EQ(read_text_file(folder_ / "called"), "serving plan\n");
  EXPECT_EQ(call("serving", "--help"), 8);
  EXPECT_EQ(call("nets", "simulate"), 9);
  EXPECT_EQ(call("bench", "mtrain"), 10);
}

TEST_F(HandOver, AMemberOfAGroupThatComputesBecomesTheGroupsProgramWithLibTorch) {
  put_executor_beside(fs::perms::owner_all);
  put_beside("tool-serving", 8);
  EXPECT_EQ(call("serving", "run"), 8) << "it was built without LibTorch, and says so";
  put_beside("tool-serving-executor", 11);
  put_beside("tool-nets-executor", 12);
  EXPECT_EQ(call("serving", "run"), 11);
  EXPECT_EQ(call("serving", "run", "--device", "cpu"), 11);
  EXPECT_EQ(call("serving", "run", "--device", "emulated"), 8);
  EXPECT_EQ(call("serving", "run", "--device=emulated"), 8);
  EXPECT_EQ(call("serving", "plan"), 8);
  EXPECT_EQ(call("nets", "train"), 12);
  EXPECT_EQ(call("nets", "plan"), kCameBack) << "there is no tool-nets";
}

TEST_F(HandOver, AllElseStays) {
  put_executor_beside(fs::perms::owner_all);
  for (const char* const command : {"plan", "simulate", "compare", "report", "schedule", "inspect", "bench", "--help"})
    EXPECT_EQ(call(command, "train"), kCameBack) << command;
  EXPECT_EQ(call(nullptr, nullptr), kCameBack);
}

TEST_F(HandOver, CommandsThatShowOptionsOrEstimateStay) {
  put_executor_beside(fs::perms::owner_all);
  for (const char* const command : {"profile", "train", "evaluate"}) {
    EXPECT_EQ(call(command, "--help"), kCameBack) << command;
    EXPECT_EQ(call(command, "-h"), kCameBack) << command;
  }
  for (const char* const option : {"--like", "--like=bert-large", "--import=graph.txt"})
    EXPECT_EQ(call("profile", option), kCameBack) << option;
  EXPECT_EQ(call("profile", "--model=--like"), 7) << "a value is no option";
  EXPECT_EQ(call("train", "--device", "emulated"), 7) << "its messages are real tensors";
}

TEST_F(HandOver, WithoutTheProgramBesideTheCommandItselfSaysSo) { EXPECT_EQ(call("train", "plan.json"), kCameBack); }

TEST_F(HandOver, AProgramBesideThatCannotBeStartedIsNamed) {
  put_executor_beside(fs::perms::owner_read);
  EXPECT_EQ(call("train", "plan.json"), kThrew);
  EXPECT_EQ(read_text_file(error_file()), tool().string() + "-executor: cannot be started: Permission denied");
}

/// An installed folder: the tool in bin/, the other program in lib/frostpipe/.
class HandOverInstalled : public HandOver {
 protected:
  HandOverInstalled() {
    fs::create_directories(folder_ / "bin");
    fs::rename(folder_ / "tool", tool());
    fs::permissions(file("lib/frostpipe/tool-executor",
                         "#!/bin/sh\necho \"$1 $LD_LIBRARY_PATH\" > " + (folder_ / "called").string() + "; exit 7\n"),
                    fs::perms::owner_all);
  }
  ~HandOverInstalled() override { unsetenv("TORCH_ROOT"); }

  fs::path tool() const override { return folder_ / "bin" / "tool"; }
};

TEST_F(HandOverInstalled, TheLoaderIsLedToLibTorchBeforeWhatItWasLedToAlready) {
  file("torch/lib/libtorch_cpu.so");
  setenv("TORCH_ROOT", (folder_ / "torch").c_str(), 1);
  setenv("LD_LIBRARY_PATH", "/mine", 1);
  EXPECT_EQ(call("train", "plan.json"), 7);
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(read_text_file(folder_ / "called"), "train " + (folder_ / "torch/lib").string() + ":/mine\n");
}

TEST_F(HandOverInstalled, WithoutLibTorchItIsSaidWhereItWasLookedFor) {
  setenv("TORCH_ROOT", (folder_ / "nowhere").c_str(), 1);
  EXPECT_EQ(call("train", "plan.json"), kThrew);
  EXPECT_THAT(read_text_file(error_file()),
              testing::HasSubstr(" was not found: TORCH_ROOT, " + (folder_ / "nowhere").string() +
                                 ": has no lib/libtorch_cpu.so; install torch=="));
  EXPECT_FALSE(fs::exists(folder_ / "called"));
  EXPECT_EQ(call("train", "--help"), kCameBack);
  EXPECT_EQ(call("profile", "--like=bert-large"), kCameBack);
}

}  // namespace
}  // namespace frostpipe
