// Oracle: folders that the tests lay out like a build, an installation and distributions.
#include "executor/installation/executor_program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

class ExecutorProgramTest : public test::ScratchFolderTest {};

TEST_F(ExecutorProgramTest, IsBesideTheToolInABuildFolder) {
  file("build/lib/frostpipe/tool-executor");
  const fs::path beside = file("build/bin/tool-executor");
  const auto executor = find_executor(folder_ / "build/bin/tool");
  ASSERT_TRUE(executor);
  EXPECT_EQ(executor->file, beside);
  EXPECT_EQ(executor->prefix, "");
}

TEST_F(ExecutorProgramTest, IsInLibOfAnInstalledFolder) {
  EXPECT_FALSE(find_executor(folder_ / "prefix/bin/tool"));
  const fs::path installed = file("prefix/lib/frostpipe/tool-executor");
  const auto executor = find_executor(folder_ / "prefix/bin/tool");
  ASSERT_TRUE(executor);
  EXPECT_EQ(executor->file, installed);
  EXPECT_EQ(executor->prefix, folder_ / "prefix");
}

TEST_F(ExecutorProgramTest, GccsLibrariesAreTheSystemsWhereItHasThem) {
  const ExecutorProgram executor{.file = folder_ / "prefix/lib/frostpipe/tool-executor", .prefix = folder_ / "prefix"};
  const Torch torch{.folder = "/opt/torch", .version = "", .named_by = ""};
  const fs::path with = file("with/libstdc++.so.6").parent_path(), without = file("without/libm.so.6").parent_path();
  const std::string ours = (folder_ / "prefix/lib/frostpipe/gcc").string();
  EXPECT_EQ(library_path(executor, torch, "", {without, with}), "/opt/torch/lib");
  EXPECT_EQ(library_path(executor, torch, "", {without, folder_ / "nowhere"}), "/opt/torch/lib:" + ours);
  EXPECT_EQ(library_path(executor, torch, "/mine:/yours", {without}), "/opt/torch/lib:/mine:/yours:" + ours)
      << "what somebody has set stays, behind LibTorch alone";
  setenv("LD_LIBRARY_PATH", "/mine", 1);
  EXPECT_EQ(library_path(executor, torch), library_path(executor, torch, "/mine", system_library_folders()));
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(library_path(executor, torch), library_path(executor, torch, "", system_library_folders()));
}

}  // namespace
}  // namespace frostpipe
