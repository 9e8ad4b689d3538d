#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/error.h"

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
  /// Names of the files in the folder, in which no temporary file may be left.
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
  static std::string read_error(const fs::path& path) {
    try {
      read_text_file(path);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    ADD_FAILURE() << path << " was read";
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
  EXPECT_EQ(read_error(folder_ / "absent"),
            (folder_ / "absent").string() + ": cannot be read: No such file or directory");
  EXPECT_EQ(read_error(folder_), folder_.string() + ": cannot be read: Is a directory");
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
  const bool is_root = ::geteuid() == 0;  // root may write everywhere, so run as another user here
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

TEST_F(Files, AreReplacedWithThePermissionsTheyHad) {
  const mode_t before = ::umask(0022);
  for (const unsigned mode : {0664u, 0600u, 0444u}) {
    write_file_atomically(folder_ / "x", "first");
    fs::permissions(folder_ / "x", static_cast<fs::perms>(mode));
    write_file_atomically(folder_ / "x", "second");
    EXPECT_EQ(static_cast<unsigned>(fs::status(folder_ / "x").permissions()), mode);
  }
  ::umask(before);
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
  EXPECT_THAT(error, testing::EndsWith("x: cannot be written: File too large (a file may have 64.0 KiB: ulimit -f)"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "old");
  EXPECT_THAT(names(), testing::ElementsAre("x"));
}

TEST_F(Files, ALinkIsReplacedAndItsTargetUntouched) {
  write_file_atomically(folder_ / "target", "somebody's");
  for (const fs::path& to : {folder_ / "target", folder_ / "nowhere"}) {
    fs::create_symlink(to, folder_ / "link");
    write_file_atomically(folder_ / "link", "new");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "link")));
    EXPECT_EQ(read_text_file(folder_ / "link"), "new");
    fs::remove(folder_ / "link");
  }
  EXPECT_EQ(read_text_file(folder_ / "target"), "somebody's");
  EXPECT_THAT(names(), testing::ElementsAre("target"));
}

TEST_F(Files, ALinkToAFolderIsFollowed) {
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "model");
  write_file_atomically(folder_ / "model" / "x", "content");
  EXPECT_TRUE(fs::is_symlink(folder_ / "model"));
  EXPECT_EQ(read_text_file(folder_ / "elsewhere" / "x"), "content");
}

TEST_F(Files, APipeInAFilesPlaceIsReplaced) {
  ASSERT_EQ(::mkfifo((folder_ / "x").c_str(), 0600), 0);
  write_file_atomically(folder_ / "x", "content");  // opening the pipe itself would wait for a reader forever
  EXPECT_EQ(read_text_file(folder_ / "x"), "content");
}

TEST_F(Files, ANameAsLongAsNamesCanBeIsWritten) {
  const fs::path longest = folder_ / std::string(255, 'x');
  write_file_atomically(longest, "content");
  EXPECT_EQ(read_text_file(longest), "content");
}

TEST_F(Files, AFileThatIsNotFinishedLeavesNothing) {
  write_file_atomically(folder_ / "x", "old");
  {
    AtomicFile file(folder_ / "x");
    file.write("new");
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(read_text_file(folder_ / "x"), "old");
  EXPECT_THAT(names(), testing::ElementsAre("x"));
}

TEST_F(Files, LeftoversOfWritersAreRemovedAndNothingElse) {
  // The name of a file left by a writer that was killed.
  std::string leftover;
  {
    AtomicFile file(folder_ / "x");
    leftover = names().front();
  }
  for (const std::string& name : {leftover, std::string("frostpipe-mine.tmp"), std::string("x.tmp"), leftover + ".tmp"})
    write_file_atomically(folder_ / name, "content");
  fs::create_directory(folder_ / "frostpipe-0123456789abcdef.tmp");
  remove_unfinished_files(folder_);
  EXPECT_THAT(names(), testing::UnorderedElementsAre("frostpipe-mine.tmp", "x.tmp", leftover + ".tmp",
                                                     "frostpipe-0123456789abcdef.tmp"));
}

TEST_F(Files, NamedFilesMayBeDevicesOrPipes) {
  write_named_file("/dev/null", "content");
  fs::create_symlink("/dev/null", folder_ / "null");
  write_named_file(folder_ / "null", "content");
  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  write_named_file(fmt::format("/dev/fd/{}", ends[1]), "through a pipe");
  ::close(ends[1]);
  EXPECT_EQ(read_named_file(fmt::format("/dev/fd/{}", ends[0])), "through a pipe");
  ::close(ends[0]);
  fs::create_symlink(folder_ / "x", folder_ / "link");
  write_named_file(folder_ / "link", "content");
  EXPECT_FALSE(fs::is_symlink(folder_ / "link"));
}

TEST_F(Files, ADescriptorThatLeadsToAFileIsWrittenWhereItStands) {
  // As in `frostpipe ... -o /dev/stdout >> x`.
  write_file_atomically(folder_ / "x", "before, ");
  const Descriptor file(::open((folder_ / "x").c_str(), O_WRONLY | O_APPEND));
  write_named_file(fmt::format("/dev/fd/{}", file.number()), "behind");
  EXPECT_EQ(read_text_file(folder_ / "x"), "before, behind");
}

TEST_F(Files, ADeviceThatIsFullIsAnErrorToo) {
  if (!fs::exists("/dev/full"))
    GTEST_SKIP() << "needs the device /dev/full, as Linux has it: mknod -m 666 /dev/full c 1 7";
  try {
    write_named_file("/dev/full", "content");
    ADD_FAILURE() << "was written";
  } catch (const RuntimeFailure& error) {
    EXPECT_STREQ(error.what(), "/dev/full: cannot be written: No space left on device");
  }
}

TEST_F(Files, OnlyRegularFilesAreRead) {
  // Reading a pipe without a writer would block, and a device of zeros has no end.
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder_ / "vocab.txt");
  EXPECT_EQ(read_error(folder_ / "pipe"), (folder_ / "pipe").string() + ": must be a regular file, is a pipe");
  EXPECT_EQ(read_error(folder_ / "vocab.txt"),
            (folder_ / "vocab.txt").string() + ": must be a regular file, is a device");
}

TEST_F(Files, AFileThatIsTooLongIsRefusedBeforeItIsRead) {
  write_file_atomically(folder_ / "sparse", "");
  fs::resize_file(folder_ / "sparse", std::uintmax_t{1} << 40);
  EXPECT_EQ(read_error(folder_ / "sparse"),
            (folder_ / "sparse").string() + ": must have at most 1073741824 bytes, is longer");
  write_file_atomically(folder_ / "x", "12345");
  EXPECT_EQ(read_text_file(folder_ / "x", 5), "12345");
  EXPECT_THROW(read_text_file(folder_ / "x", 4), InvalidInput);
  EXPECT_EQ(read_text_file(folder_ / "x", kAnySize), "12345");
}

TEST_F(Files, OfAPipeNoMoreIsTakenThanAllowed) { EXPECT_THROW(read_named_file("/dev/zero", 1 << 20), InvalidInput); }

TEST_F(Files, AreAppendedToButNotThroughLinksAndPipes) {
  EXPECT_TRUE(append_to_file(folder_ / "x", "a"));
  EXPECT_TRUE(append_to_file(folder_ / "x", "b"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "ab");
  fs::create_symlink(folder_ / "x", folder_ / "link");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(append_to_file(folder_ / "link", "c"));
  EXPECT_FALSE(append_to_file(folder_ / "pipe", "c"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "ab");
}

// A limit of the file's size, at which a write is cut as on a full disk.
TEST_F(Files, NothingOfAFailedAppendStays) {
  ASSERT_TRUE(append_to_file(folder_ / "x", "one line\n"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 12, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const bool is_written = append_to_file(folder_ / "x", "another\n");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(is_written);
  EXPECT_EQ(read_text_file(folder_ / "x"), "one line\n");
}

TEST_F(Files, WhereTheyCannotBeWrittenIsFoundOutWithoutWriting) {
  const auto error_of = [](const fs::path& path) -> std::string {
    try {
      require_writable(path);
    } catch (const RuntimeFailure& error) {
      return error.what();
    }
    return "";
  };
  write_file_atomically(folder_ / "x", "kept");
  EXPECT_EQ(error_of(folder_ / "x"), "");
  EXPECT_EQ(error_of(folder_ / "new" / "y"), "");
  EXPECT_EQ(error_of("/dev/null"), "");
  EXPECT_EQ(error_of(folder_), folder_.string() + ": cannot be written: Is a directory");
  EXPECT_THAT(error_of(folder_ / "x" / "y"), testing::HasSubstr("x/y: cannot be written"));
  EXPECT_THAT(error_of("/proc/nothing/there"), testing::HasSubstr("/proc/nothing/there: cannot be written"));
  EXPECT_EQ(read_text_file(folder_ / "x"), "kept");
  EXPECT_THAT(names(), testing::UnorderedElementsAre("x", "new"));
  EXPECT_TRUE(fs::is_empty(folder_ / "new"));
}

TEST(Fingerprint, IsFnv1aOf64Bits) {
  // Published test values of FNV-1a.
  EXPECT_EQ(fingerprint(std::string_view("")), "cbf29ce484222325");
  EXPECT_EQ(fingerprint(std::string_view("a")), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint(std::string_view("foobar")), "85944171f73967e8");
}

}  // namespace
}  // namespace frostpipe
