#include "profiles/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "profiles/error.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "frostpipe_files_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  /// No temporary file is left behind.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename().string());
    return found;
  }
  std::string write_error(const fs::path& path, std::string_view content) const {
    try {
      write_file_atomically(path, content);
    } catch (const RuntimeFailure& error) {
      return error.what();
    }
    ADD_FAILURE() << path << " was written";
    return "";
  }
  fs::path folder_;
};

TEST_F(Files, AreReadAsTheyWereWritten) {
  const std::string bytes("a\0\r\n\xff", 5);
  write_file_atomically(folder_ / "new" / "folder" / "x.json", bytes);
  EXPECT_EQ(read_text_file(folder_ / "new" / "folder" / "x.json"), bytes);
}

TEST_F(Files, AreReplacedAndLeaveNothingBeside) {
  write_file_atomically(folder_ / "x", "a long first version");
  write_file_atomically(folder_ / "x", "second");
  EXPECT_EQ(read_text_file(folder_ / "x"), "second");
  EXPECT_THAT(names(), testing::ElementsAre("x"));
}

TEST_F(Files, ReadErrorsNameThePathAndTheReason) {
  const auto error_of = [](const fs::path& path) -> std::string {
    try {
      read_text_file(path);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of(folder_ / "absent"),
            (folder_ / "absent").string() + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of(folder_), folder_.string() + ": cannot be read: Is a directory");
}

TEST_F(Files, AFolderIsNotReplacedByAFile) {
  fs::create_directory(folder_ / "x");
  EXPECT_THAT(write_error(folder_ / "x", "content"), testing::EndsWith("x: cannot be written: Is a directory"));
  EXPECT_TRUE(fs::is_directory(folder_ / "x"));
}

TEST_F(Files, APathThroughAFileIsAnError) {
  write_file_atomically(folder_ / "x", "kept");
  EXPECT_THAT(write_error(folder_ / "x" / "y", "content"), testing::HasSubstr("cannot be written"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "kept");
}

TEST_F(Files, AReadOnlyFolderKeepsTheOldFile) {
  write_file_atomically(folder_ / "x", "old");
  fs::permissions(folder_, static_cast<fs::perms>(0555));
  const bool is_root = ::geteuid() == 0;  // who may write everywhere: be somebody else for a moment
  if (is_root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const std::string error = write_error(folder_ / "x", "new");
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_THAT(error, testing::EndsWith("x: cannot be written: Permission denied"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "old");
}

TEST_F(Files, ADiskThatRunsFullKeepsTheOldFile) {
  // A limit on file size stands for the full disk: write() fails half-way.
  write_file_atomically(folder_ / "x", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1 << 16;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error = write_error(folder_ / "x", std::string(1 << 20, 'n'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, previous);
  EXPECT_THAT(error, testing::EndsWith("x: cannot be written: File too large"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "old");
  EXPECT_THAT(names(), testing::ElementsAre("x"));
}

TEST_F(Files, ADeviceThatIsFullIsAnErrorToo) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(write_error("/dev/full", "content"), "/dev/full: cannot be written: No space left on device");
}

TEST_F(Files, ALinkStaysALink) {
  write_file_atomically(folder_ / "x", "old");
  fs::create_symlink(folder_ / "x", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "new");
}

TEST(Fingerprint, IsFnv1aOf64Bits) {
  // Published test values of FNV-1a.
  EXPECT_EQ(fingerprint(std::string_view("")), "cbf29ce484222325");
  EXPECT_EQ(fingerprint(std::string_view("a")), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint(std::string_view("foobar")), "85944171f73967e8");
}

}  // namespace
}  // namespace frostpipe
