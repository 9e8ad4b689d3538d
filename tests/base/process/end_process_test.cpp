// Oracle: the exit code, and a file to which the process has printed without flushing. A destroyed static object would
// print too.
#include "base/process/end_process.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kPrinted = "a line without an end, and what a static object prints";
#else
constexpr const char* kPrinted = "a line without an end";
#endif

struct PrintsAtItsEnd {
  std::FILE* file;
  ~PrintsAtItsEnd() { std::fputs(", and what a static object prints", file); }
};

using EndProcessDeathTest = test::ScratchFolderTest;

TEST_F(EndProcessDeathTest, WritesWhatWasPrintedAndDestroysNoStaticObject) {
  const std::filesystem::path path = file("printed");
  const auto print_and_end = [&] {
    std::FILE* const printed = std::fopen(path.c_str(), "w");
    std::fputs("a line without an end", printed);
    static const PrintsAtItsEnd last{printed};
    end_process(3);
  };
  EXPECT_EXIT(print_and_end(), testing::ExitedWithCode(3), "");
  EXPECT_EQ(read_text_file(path), kPrinted);
}

}  // namespace
}  // namespace frostpipe
