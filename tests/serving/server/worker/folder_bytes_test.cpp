#include "serving/server/worker/folder_bytes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class FolderBytesTest : public test::ScratchFolderTest {
 protected:
  FolderBytesTest() {
    file("config.json", "{}");
    file("vocab.txt", "a\nb\n");
    file("added_tokens.json", R"({"c": 2})");
    file("model-00001-of-00002.safetensors", std::string(3 << 20, 'x'));
    file("model-00002-of-00002.safetensors", "y");
    file("model.safetensors.index.json", "{}");
  }
};

TEST_F(FolderBytesTest, TellWhatOfTheModelIsAnother) {
  const FolderBytes before = read_folder_bytes(folder_);
  const auto changed_by = [&](const std::string& name, const std::string& content) {
    const std::string old = read_text_file(folder_ / name);
    file(name, content);
    const FolderBytes now = read_folder_bytes(folder_);
    file(name, old);
    return std::string(now.weights != before.weights ? "weights " : "") + (now.others != before.others ? "others" : "");
  };
  std::string longer(3 << 20, 'x');
  EXPECT_EQ(changed_by("model-00001-of-00002.safetensors", longer), "") << "written again, as it was";
  longer.back() = 'X';
  EXPECT_EQ(changed_by("model-00001-of-00002.safetensors", longer), "weights ");
  EXPECT_EQ(changed_by("model-00002-of-00002.safetensors", ""), "weights ");
  EXPECT_EQ(changed_by("model.safetensors.index.json", "{ }"), "weights ");
  EXPECT_EQ(changed_by("config.json", "{ }"), "others");
  EXPECT_EQ(changed_by("vocab.txt", "b\na\n"), "others");
  EXPECT_EQ(changed_by("added_tokens.json", R"({"d": 2})"), "others");
  EXPECT_EQ(read_folder_bytes(folder_), before);

  file("README.md", "what nobody reads");
  std::filesystem::create_directory(folder_ / "checkpoints");
  EXPECT_EQ(read_folder_bytes(folder_), before);
  std::filesystem::rename(folder_ / "model-00002-of-00002.safetensors", folder_ / "other.safetensors");
  EXPECT_NE(read_folder_bytes(folder_).weights, before.weights);
}

}  // namespace
}  // namespace frostpipe
