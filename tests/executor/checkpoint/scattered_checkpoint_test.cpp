// Oracle: parts that the test writes, and then damages or removes.
#include "executor/checkpoint/scattered_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ScatteredCheckpointTest : public test::ScratchFolderTest {
 protected:
  std::filesystem::path root(const std::string& host) const { return folder_ / host; }

  /// One host's part: it has the layers `here`; the other host writes the rest of three layers.
  void write(const std::string& host, int step, const std::vector<int>& here, std::uint64_t seed = 0,
             const std::string& attempt = "") const {
    CheckpointPart part{.step = step, .attempt = attempt_name(0, step), .layers = {}, .host = host};
    for (int layer = 0; layer < 3; ++layer) {
      if (std::find(here.begin(), here.end(), layer) == here.end()) {
        part.elsewhere.push_back({.name = layer_file_name(layer), .host = host == "a" ? "b" : "a"});
        continue;
      }
      const auto value = std::make_shared<float>(100 * layer + step);
      part.layers.push_back(
          {.layer = layer,
           .tensors = {{"weights", "F32", 1, std::as_bytes(std::span<const float>(value.get(), 1)), value}}});
    }
    part.num_layers = static_cast<int>(here.size());
    part.manifest = Checkpoint{.step = step, .settings = {.seed = seed}, .attempt = attempt};
    part.manifest->plan.phases = {Phase{}};
    part.manifest->plan.phases[0].partition = {{0, 3}};
    CheckpointWriter writer(root(host), host == "a" ? 0 : 1, 9);
    writer.start(std::move(part));
    writer.finish(10);
    ASSERT_EQ(writer.take_note(), std::nullopt);
  }
  void write_both(int step) const {
    write("a", step, {0, 2});
    write("b", step, {1});
  }
  void damage(const std::string& host, int step, int layer) const {
    std::filesystem::resize_file(checkpoint_path(root(host), step) / layer_file_name(layer), 7);
  }
  /// The reports of ranks 0 and 1 on host a, and 2 on host b, as they exchange them.
  std::optional<GatheredCheckpoint> gathered() const {
    std::vector<std::vector<CheckpointShare>> shares;
    for (const std::string& text :
         {to_text(shares_in(root("a"))), to_text(shares_in(root("nobody"))), to_text(shares_in(root("b")))})
      shares.push_back(shares_from_text(text));
    return newest_gathered(shares);
  }
  static std::vector<int> sources_of(const GatheredCheckpoint& checkpoint) {
    std::vector<int> ranks;
    for (const auto& source : checkpoint.layers) ranks.push_back(source.rank);
    return ranks;
  }
  std::string why_none() const {
    try {
      gathered();
      return "";
    } catch (const InvalidInput& error) {
      return error.what();
    }
  }
};

TEST_F(ScatteredCheckpointTest, ThereIsNone) { EXPECT_FALSE(gathered()); }

TEST_F(ScatteredCheckpointTest, AHostListsItsLayersAndTheHostsOfTheOthers) {
  write("a", 10, {0, 2});
  const std::vector<CheckpointShare> shares = shares_in(root("a"));
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_THAT(shares[0].whole, ElementsAre(testing::Field(&CheckpointFile::name, layer_file_name(0)),
                                           testing::Field(&CheckpointFile::name, layer_file_name(2))));
  EXPECT_THAT(shares[0].lacks, ElementsAre(CheckpointFile{.name = layer_file_name(1), .host = "b"}));
  EXPECT_EQ(shares_from_text(to_text(shares)), shares);
}

TEST_F(ScatteredCheckpointTest, OneThatIsNamedIsAllThatThereIs) {
  write("a", 10, {0, 2});
  write("a", 20, {0});
  const std::vector<CheckpointShare> shares = shares_in(checkpoint_path(root("a"), 10));
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares[0], shares_in(root("a"))[1]);
}

TEST_F(ScatteredCheckpointTest, LayersComeFromTheHostsThatHaveThem) {
  write_both(10);
  EXPECT_EQ(sources_of(*gathered()), std::vector<int>({0, 2, 0}));
  EXPECT_EQ(gathered()->step, 10);
}

TEST_F(ScatteredCheckpointTest, TheNewestThatIsWholeIsTaken) {
  write_both(10);
  write("a", 20, {0, 2});  // host b was lost meanwhile
  EXPECT_EQ(gathered()->step, 10);
  write("b", 20, {1});
  EXPECT_EQ(gathered()->step, 20);
  damage("b", 20, 1);
  EXPECT_EQ(gathered()->step, 10);
}

TEST_F(ScatteredCheckpointTest, ACopyWillDo) {
  write_both(10);
  write("b", 10, {0, 1});
  damage("a", 10, 0);
  EXPECT_EQ(sources_of(*gathered()), std::vector<int>({2, 2, 0}));
}

TEST_F(ScatteredCheckpointTest, PartsOfAnotherRunDoNotCount) {
  write("a", 10, {0, 2}, /*seed=*/1);
  write("b", 10, {1}, /*seed=*/2);
  EXPECT_THAT(why_none(), HasSubstr("no host has layer-001.safetensors whole, which host b wrote"));
}

TEST_F(ScatteredCheckpointTest, PartsOfAnotherStartOfTheRunDoNotCount) {
  write("a", 10, {0, 2}, /*seed=*/0, "first");
  write("b", 10, {1}, /*seed=*/0, "second");
  EXPECT_THAT(why_none(), HasSubstr("no host has layer-001.safetensors whole"));
  write("a", 10, {0, 2}, /*seed=*/0, "second");
  EXPECT_EQ(gathered()->step, 10);
}

TEST_F(ScatteredCheckpointTest, LostLayersAreNamedWithTheHostsThatWroteThem) {
  write("b", 10, {1});
  EXPECT_THAT(why_none(), HasSubstr("checkpoint of step 10: no host has layer-000.safetensors, layer-002.safetensors "
                                    "whole, which host a wrote. Start the run on the hosts that wrote it"));
  write("a", 10, {0, 2});
  damage("a", 10, 2);
  EXPECT_THAT(why_none(), HasSubstr("no host has layer-002.safetensors whole, which host a wrote."));
}

TEST_F(ScatteredCheckpointTest, WithAllItsLayersItIsLikeAnyOther) {
  write_both(10);
  EXPECT_FALSE(newest_whole_checkpoint(root("b")).checkpoint);
  const std::filesystem::path path = checkpoint_path(root("b"), 10);
  const GatheredCheckpoint all = *gathered();
  std::vector<CheckpointFile> layers;
  for (const auto& source : all.layers) {
    if (source.rank == 0)
      std::filesystem::copy(checkpoint_path(root("a"), 10) / source.file.name, path / source.file.name);
    layers.push_back(source.file);
  }
  complete_manifest(path, layers);
  const std::optional<Checkpoint> whole = newest_whole_checkpoint(root("b")).checkpoint;
  ASSERT_TRUE(whole);
  EXPECT_EQ(num_layers(*whole), 3);
}

}  // namespace
}  // namespace frostpipe
