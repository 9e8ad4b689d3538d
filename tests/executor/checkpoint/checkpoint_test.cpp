// Oracle: a checkpoint is read back as written; one with any changed byte is refused.
#include "executor/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "tests/executor/checkpoint/written_by_two_ranks.h"

namespace frostpipe {
namespace {

using test::small_checkpoint;
using testing::HasSubstr;
using CheckpointTest = test::WrittenByTwoRanks;

TEST_F(CheckpointTest, FilesOfTwoRanksAreReadBack) {
  write(7);
  const Checkpoint read = read_checkpoint(checkpoint_path(root_, 7));
  const Checkpoint written = small_checkpoint(7);
  EXPECT_EQ(read.step, 7);
  EXPECT_EQ(read.settings, written.settings);
  EXPECT_EQ(read.freeze_state, written.freeze_state);
  EXPECT_TRUE(read.freeze_is_decided);
  EXPECT_EQ(read.plan, written.plan);
  EXPECT_EQ(read.run, written.run);
  ASSERT_EQ(num_layers(read), 3);
  for (int layer = 0; layer < 3; ++layer) {
    const SafetensorsFile file = open_layer(read, layer);
    const StoredTensor& tensor = file.tensor("first_moment", {5 + layer});
    float value = 0;
    std::memcpy(&value, tensor.data.data(), 4);
    EXPECT_EQ(value, 100 * layer + (layer == 0 ? 0 : 7));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), {}), 1) << "nothing unfinished is left";
  const Checkpoint told = checkpoint_from_text(to_text(written));
  EXPECT_EQ(told.run, written.run);
  EXPECT_EQ(told.plan, written.plan);
}

TEST_F(CheckpointTest, ADamagedTextOfASurvivorIsRefused) {
  const std::string text = to_text(small_checkpoint(7));
  for (const std::string& damaged : {text.substr(0, text.size() / 2), std::string("{}"), std::string("[\"a\",\"b\"]"),
                                     std::string("[1,2,3]"), std::string("[\"a\",\"b\",\"c\"]")})
    EXPECT_THROW(checkpoint_from_text(damaged), InvalidInput) << damaged;
}

/// The checkpoint is whole or refused.
bool loads(const std::filesystem::path& folder) {
  try {
    const Checkpoint checkpoint = read_checkpoint(folder);
    for (int layer = 0; layer < num_layers(checkpoint); ++layer) open_layer(checkpoint, layer);
    return num_layers(checkpoint) == 3;
  } catch (const InvalidInput&) {
    return false;
  }
}

TEST_F(CheckpointTest, NoBytePrefixOfAnyFileIsLoaded) {
  write(7);
  const std::filesystem::path folder = checkpoint_path(root_, 7);
  ASSERT_TRUE(loads(folder));
  int num_prefixes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string whole = read_text_file(entry.path());
    for (std::size_t size = 0; size < whole.size(); ++size, ++num_prefixes) {
      std::ofstream(entry.path(), std::ios::binary | std::ios::trunc)
          .write(whole.data(), static_cast<std::streamsize>(size));
      // The last byte of checkpoint.json is a line end without meaning.
      const bool says_all =
          entry.path().filename() == "checkpoint.json" && size + 1 == whole.size() && whole.back() == '\n';
      EXPECT_EQ(loads(folder), says_all) << entry.path().filename() << " cut to " << size;
    }
    std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << whole;
    ASSERT_TRUE(loads(folder));
    std::filesystem::rename(entry.path(), root_ / "aside");
    EXPECT_FALSE(loads(folder)) << "without " << entry.path().filename();
    std::filesystem::rename(root_ / "aside", entry.path());
  }
  EXPECT_GT(num_prefixes, 1000);
}

TEST_F(CheckpointTest, NoChangedByteIsLoaded) {
  write(7);
  const std::filesystem::path folder = checkpoint_path(root_, 7);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string whole = read_text_file(entry.path());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << changed;
      EXPECT_FALSE(loads(folder)) << entry.path().filename() << " byte " << i;
    }
    std::ofstream(entry.path(), std::ios::binary | std::ios::trunc) << whole;
  }
}

TEST_F(CheckpointTest, TheNewestWholeOneIsTaken) {
  for (const int step : {3, 5, 9}) write(step);
  std::ofstream(checkpoint_path(root_, 9) / "layer-001.safetensors", std::ios::app) << "more";
  std::filesystem::create_directories(checkpoint_path(root_, 11));  // an empty folder
  std::filesystem::create_directories(root_ / "step-00000012.part-0-3");
  const NewestCheckpoint newest = newest_whole_checkpoint(root_);
  ASSERT_TRUE(newest.checkpoint);
  EXPECT_EQ(newest.checkpoint->step, 5);
  ASSERT_EQ(newest.passed_over.size(), 2u);
  EXPECT_THAT(newest.passed_over[1], HasSubstr("layer-001.safetensors"));
  EXPECT_FALSE(newest_whole_checkpoint(root_ / "nowhere").checkpoint);
}

TEST_F(CheckpointTest, OnlyWhatThisProgramMadeIsRemoved) {
  write(1);
  const std::filesystem::path others = root_ / "others";
  std::filesystem::create_directories(others);
  std::filesystem::rename(checkpoint_path(root_, 1), others / "kept");
  std::filesystem::create_directory_symlink(others / "kept", checkpoint_path(root_, 1));
  for (const char* name :
       {"my.parts", "step-00000002.part-0-1", "step-00000002.part-0-1-mine", "step-2.part-0-1", "step-2", "step-"})
    file(std::string(name) + "/x");
  remove_unfinished_checkpoints(root_);
  remove_checkpoints_after(root_, 0);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAre("others", "my.parts", "step-00000002.part-0-1-mine",
                                                  "step-2.part-0-1", "step-2", "step-"));
  EXPECT_TRUE(loads(others / "kept"));
}

TEST_F(CheckpointTest, ALinkInAFilesPlaceIsReplacedAndALinkedFolderIsFollowed) {
  const std::filesystem::path disk = file("disk/secret", "somebody's").parent_path(), root = root_ / "checkpoints",
                              part = disk / "step-00000004.part-0-4";
  std::filesystem::create_directory_symlink(disk, root);
  std::filesystem::create_directories(part);
  for (const char* name : {"checkpoint.json", "plan.json", "run.json", "layer-002.safetensors"})
    std::filesystem::create_symlink(disk / "secret", part / name);
  CheckpointWriter first(root, 0, 3), second(root, 1, 3);
  write(first, second, 4);
  EXPECT_EQ(read_text_file(disk / "secret"), "somebody's");
  EXPECT_TRUE(loads(checkpoint_path(disk, 4)));
}

}  // namespace
}  // namespace frostpipe
