// Oracle: what was written comes back; anything that is not byte for byte what was written is refused.
#include "executor/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "executor/checkpoint/checkpoint_writer.h"
#include "profiles/error.h"
#include "profiles/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

TrainingPlan small_plan() {
  TrainingPlan plan{.method = PlanMethod::static_pipeline,
                    .world_size = 2,
                    .global_batch_size = 8,
                    .num_steps = 20,
                    .phases = {Phase{}}};
  plan.phases[0].layout = {.pipeline_parallel_size = 2};
  plan.phases[0].partition = {{0, 1}, {1, 3}};
  return plan;
}

Checkpoint small_checkpoint(int step) {
  Checkpoint checkpoint{.step = step,
                        .settings = {.model_fingerprint = "m",
                                     .data_fingerprint = "d",
                                     .seed = 3,
                                     .global_batch_size = 8,
                                     .num_steps = 20,
                                     .optimizer = Optimizer::kAdamW,
                                     .dtype = DType::kFloat32,
                                     .learning_rate = 0.1},
                        .plan_fingerprint = "p",
                        .freeze_rule = "paper",
                        .freeze_state = {0, 0, 1.5, -1e300, 0.1},
                        .freeze_is_decided = true,
                        .plan = small_plan()};
  checkpoint.run.steps.push_back({.step = 0, .loss = 0.1, .samples = 8});
  return checkpoint;
}

/// A layer whose values tell layer and step.
LayerImage image(int layer, int step, bool frozen = false) {
  const auto values =
      std::make_shared<std::vector<float>>(5 + layer, static_cast<float>(100 * layer + (frozen ? 0 : step)));
  LayerImage image{.layer = layer, .frozen = frozen, .tensors = {}};
  for (const char* name : {"weights", "first_moment"}) {
    image.tensors.push_back({name, "F32", std::ssize(*values), std::as_bytes(std::span(*values)), values});
  }
  return image;
}

class CheckpointTest : public test::ScratchFolderTest {
 protected:
  /// Two ranks of three layers, the last of them trainable.
  void write(CheckpointWriter& first, CheckpointWriter& second, int step) {
    const std::string attempt = "0-" + std::to_string(step);
    second.start({.step = step,
                  .attempt = attempt,
                  .layers = {image(1, step), image(2, step)},
                  .manifest = std::nullopt,
                  .num_layers = 3});
    first.start({.step = step,
                 .attempt = attempt,
                 .layers = {image(0, step, true)},
                 .manifest = small_checkpoint(step),
                 .num_layers = 3});
    second.finish(10);
    first.finish(10);
  }
  void write(int step) {
    CheckpointWriter first(root_, 0, 3), second(root_, 1, 3);
    write(first, second, step);
  }
  const std::filesystem::path& root_ = folder_;
};

TEST_F(CheckpointTest, WhatTwoRanksWriteComesBack) {
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

/// Whole or refused.
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
      // The last byte of checkpoint.json is a line end that says nothing.
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

TEST_F(CheckpointTest, OldOnesGoButTheHeldOne) {
  CheckpointWriter first(root_, 0, 2), second(root_, 1, 2);
  for (const int step : {1, 2, 3, 4, 5}) {
    if (step == 2) first.hold(2);
    write(first, second, step);
  }
  EXPECT_THAT(checkpoints_in(root_),
              testing::ElementsAre(checkpoint_path(root_, 5), checkpoint_path(root_, 4), checkpoint_path(root_, 2)));
  remove_checkpoints_after(root_, 3);
  EXPECT_THAT(checkpoints_in(root_), testing::ElementsAre(checkpoint_path(root_, 2)));
}

TEST_F(CheckpointTest, TheNewestThatAllPlacesHaveStays) {
  CheckpointWriter first(root_, 0, 1), second(root_, 1, 1);
  EXPECT_EQ(first.completed(), -1);
  for (const int step : {1, 2, 3}) {
    write(first, second, step);
    EXPECT_EQ(first.completed(), step);
    if (step == 1) first.completed_everywhere(1);
  }
  EXPECT_THAT(checkpoints_in(root_), testing::ElementsAre(checkpoint_path(root_, 3), checkpoint_path(root_, 1)));
  first.completed_everywhere(3);
  write(first, second, 4);
  EXPECT_THAT(checkpoints_in(root_), testing::ElementsAre(checkpoint_path(root_, 4), checkpoint_path(root_, 3)));
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

TEST_F(CheckpointTest, AFrozenLayerIsWrittenOnceAndLinked) {
  CheckpointWriter first(root_, 0, 3), second(root_, 1, 3);
  for (const int step : {1, 2}) write(first, second, step);
  const auto links = [&](int step, int layer) {
    return std::filesystem::hard_link_count(checkpoint_path(root_, step) / layer_file_name(layer));
  };
  EXPECT_EQ(links(2, 0), 2u);
  EXPECT_EQ(links(2, 1), 1u);
  EXPECT_TRUE(loads(checkpoint_path(root_, 1)));
  EXPECT_TRUE(loads(checkpoint_path(root_, 2)));
  first.forget();
  write(first, second, 3);
  EXPECT_EQ(links(3, 0), 1u);
}

TEST_F(CheckpointTest, AFrozenLayerThatIsThereNeedsNoTensors) {
  CheckpointWriter writer(root_, 0, 1);
  const auto write_layers = [&](int step, LayerImage first) {
    CheckpointPart part{.step = step, .attempt = "0-" + std::to_string(step), .layers = {}, .num_layers = 3};
    part.layers = {std::move(first), image(1, step), image(2, step)};
    part.manifest = small_checkpoint(step);
    writer.start(std::move(part));
    writer.finish(10);
  };
  EXPECT_FALSE(writer.has_frozen(0));
  write_layers(1, image(0, 1, /*frozen=*/true));
  EXPECT_TRUE(writer.has_frozen(0));
  EXPECT_FALSE(writer.has_frozen(1));
  write_layers(2, {.layer = 0, .frozen = true, .tensors = {}});
  EXPECT_TRUE(loads(checkpoint_path(root_, 2)));
  std::filesystem::remove_all(root_);
  EXPECT_FALSE(writer.has_frozen(0)) << "somebody has removed it";
}

TEST_F(CheckpointTest, ARankThatHasNoLayersLeavesNothingWhereTheOthersWereFaster) {
  CheckpointWriter first(root_, 0, 2), second(root_, 1, 2);
  first.start({.step = 4,
               .attempt = "0-0",
               .layers = {image(0, 4), image(1, 4), image(2, 4)},
               .manifest = small_checkpoint(4),
               .num_layers = 3});
  first.finish(10);
  second.start({.step = 4, .attempt = "0-0", .layers = {}, .manifest = std::nullopt, .num_layers = 3});
  second.finish(10);
  EXPECT_TRUE(loads(checkpoint_path(root_, 4)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), {}), 1);
}

TEST_F(CheckpointTest, WhatEarlierRoundsHaveLeftGoesByItsName) {
  const auto make = [&](const std::string& name) { file(name + "/layer-000.safetensors"); };
  const std::string attempt = "step-00000004.part-" + attempt_name(1, 7);
  for (const std::string& name :
       {attempt, std::string("step-00000005.part-0-0"), std::string("step-123456789.part-1-0")})
    make(name);
  const std::vector<std::string> others{"step-00000004.part-2-0",    "step-00000003",   "step-00000004.part-1-7.mine",
                                        "my-step-00000004.part-1-7", "step-4.part-1-7", "step-00000004.part-x-7"};
  for (const std::string& name : others) make(name);
  remove_attempts_before(root_, 2);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, testing::UnorderedElementsAreArray(others));
}

TEST_F(CheckpointTest, ALayerThatDoesNotComeCostsTheCheckpointAndNothingElse) {
  CheckpointWriter first(root_, 0, 2);
  first.start({.step = 4, .attempt = "0-0", .layers = {image(0, 4)}, .manifest = small_checkpoint(4), .num_layers = 3});
  first.give_up("a rank could not write its part");
  first.finish(10);
  EXPECT_THAT(first.take_note().value_or(""),
              HasSubstr("step 4 was not written: a rank could not write its part; training goes on"));
  EXPECT_FALSE(first.take_note());
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  CheckpointWriter second(root_, 1, 2);
  write(first, second, 5);
  EXPECT_TRUE(loads(checkpoint_path(root_, 5)));
}

TEST_F(CheckpointTest, AFileThatCannotGrowIsSaid) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  CheckpointWriter writer(root_, 0, 2);
  writer.start(
      {.step = 4, .attempt = "0-0", .layers = {image(0, 4)}, .manifest = small_checkpoint(4), .num_layers = 1});
  writer.finish(10);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_TRUE(writer.failed());
  EXPECT_THAT(writer.take_note().value_or(""), HasSubstr("cannot be written: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(CheckpointTest, WithoutAThreadTheCheckpointIsGivenUpAndTheRunGoesOn) {
  CheckpointWriter writer(root_, 0, 2);
  CheckpointPart part{
      .step = 4, .attempt = "0-0", .layers = {image(0, 4)}, .manifest = small_checkpoint(4), .num_layers = 1};
  pthread_attr_t before, huge;
  pthread_getattr_default_np(&before);
  pthread_getattr_default_np(&huge);
  pthread_attr_setstacksize(&huge, std::size_t{1} << 47);  // a stack that no process has room for
  pthread_setattr_default_np(&huge);
  writer.start(std::move(part));
  pthread_setattr_default_np(&before);
  EXPECT_FALSE(writer.busy());
  EXPECT_TRUE(writer.failed());
  EXPECT_THAT(writer.take_note().value_or(""),
              HasSubstr("step 4 was not written: a thread cannot be started: Resource temporarily unavailable"));
}

}  // namespace
}  // namespace frostpipe
