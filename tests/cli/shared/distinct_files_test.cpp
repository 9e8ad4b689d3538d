#include "cli/shared/distinct_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/shared/usage_error.h"
#include "tests/cli/command_line.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class DistinctFilesTest : public test::ScratchFolderTest {
 protected:
  /// Parses the words of a command that reads --data and writes -o, and compares the files that they name.
  void compare(const std::string& words) {
    CLI::App command;
    std::string output, data;
    command.add_option("-o,--output", output);
    command.add_option("--data", data);
    ASSERT_EQ(test::parse(command, words), "");
    require_distinct_files(command);
  }
};

TEST_F(DistinctFilesTest, AFileThatIsReadIsNotWritten) {
  const std::string read = file("read.tsv", "").string();
  EXPECT_THROW(compare("-o " + read + " --data " + read), UsageError);
  EXPECT_NO_THROW(compare("-o " + read + ".json --data " + read));
}

TEST_F(DistinctFilesTest, ATextThatIsTooLongForAFileNamesNone) {
  EXPECT_NO_THROW(compare("-o " + (folder_ / "plan.json").string() + " --data fixed:" + std::string(256, '1')));
}

}  // namespace
}  // namespace frostpipe
