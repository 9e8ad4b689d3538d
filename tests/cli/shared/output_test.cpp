#include "cli/shared/output.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(Printable, LeavesTextOfAnyLanguage) {
  for (const char* const text : {"", "plain\n\ttext", "Käse", "日本", "😀"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ReplacesWhatCommandsATerminal) {
  EXPECT_EQ(printable("a\033[2Jb"), "a\uFFFD[2Jb");
  EXPECT_EQ(printable("a\rb"), "a\uFFFDb");
  EXPECT_EQ(printable("\x7F"), "\uFFFD");
  EXPECT_EQ(printable("\u009B31m"), "\uFFFD31m") << "the same command in one character";
  EXPECT_EQ(printable("\u00A0"), "\u00A0") << "the first after them";
}

TEST(Printable, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(printable("\xFFx"), "\uFFFDx");
  EXPECT_EQ(printable("\xC3"), "\uFFFD") << "half a character";
  EXPECT_EQ(printable("\xC0\xAF"), "\uFFFD\uFFFD") << "a slash in too many bytes";
}

TEST(Output, ResultsAndNotesGoToTheirStreams) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  print_result("result\a\n");
  print_note("note");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "result\uFFFD\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "frostpipe: note\n");
}

}  // namespace
}  // namespace frostpipe
