// Oracle: the exit code, and what a process has printed into a file without flushing it.
#include "executor/elastic/end_process.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "profiles/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using EndProcessDeathTest = test::ScratchFolderTest;

TEST_F(EndProcessDeathTest, WritesWhatWasPrintedAndHasTheExitCode) {
  const std::filesystem::path path = file("printed");
  const auto print_and_end = [&] {
    std::FILE* const printed = std::fopen(path.c_str(), "w");
    std::fputs("a line without an end", printed);
    end_process(3);
  };
  EXPECT_EXIT(print_and_end(), testing::ExitedWithCode(3), "");
  EXPECT_EQ(read_text_file(path), "a line without an end");
}

}  // namespace
}  // namespace frostpipe
