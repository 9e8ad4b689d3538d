// Oracle: the expected files, listed by hand.
#include "executor/checkpoint/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "tests/executor/checkpoint/written_by_two_ranks.h"

namespace frostpipe {
namespace {

using test::image;
using test::small_checkpoint;
using testing::HasSubstr;
using CheckpointWriterTest = test::WrittenByTwoRanks;

TEST_F(CheckpointWriterTest, OldOnesGoButTheHeldOne) {
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

TEST_F(CheckpointWriterTest, TheNewestThatAllPlacesHaveStays) {
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

/// The other ranks have not written a newer one, so the run can resume only from this one.
TEST_F(CheckpointWriterTest, TheOneThatTheRunWentBackToStays) {
  for (const bool has_written_later_ones : {false, true}) {
    CheckpointWriter before(root_, 0, 2), other_before(root_, 1, 2);
    write(before, other_before, 10);
    write(before, other_before, 20);
    remove_checkpoints_after(root_, 10);
    CheckpointWriter anew(root_, 0, 2), second(root_, 1, 2);
    CheckpointWriter& first = has_written_later_ones ? before : anew;
    first.completed_everywhere(20);
    first.set_completed(10);
    EXPECT_EQ(first.completed(), 10);
    EXPECT_EQ(first.completed_everywhere(), 10);
    for (const int step : {12, 14, 16}) write(first, second, step);
    EXPECT_THAT(checkpoints_in(root_), testing::ElementsAre(checkpoint_path(root_, 16), checkpoint_path(root_, 14),
                                                            checkpoint_path(root_, 10)));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
}

TEST_F(CheckpointWriterTest, AFrozenLayerIsWrittenOnceAndLinked) {
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

TEST_F(CheckpointWriterTest, AFrozenLayerThatIsThereNeedsNoTensors) {
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

TEST_F(CheckpointWriterTest, ARankThatHasNoLayersLeavesNothingWhereTheOthersWereFaster) {
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

TEST_F(CheckpointWriterTest, LeftoversOfEarlierRoundsAreRemovedByTheirNames) {
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

TEST_F(CheckpointWriterTest, ALayerThatDoesNotComeCostsTheCheckpointAndNothingElse) {
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

TEST_F(CheckpointWriterTest, ADamagedListOfAnotherRankIsNamed) {
  for (const std::string_view line : {"layer-001.safetensors x 0123\n", "layer-001.safetensors\n", "a b\n", "a  b\n"}) {
    file("step-00000004.part-0-0/rank-1.written", line);
    CheckpointWriter writer(root_, 0, 2);
    writer.start(
        {.step = 4, .attempt = "0-0", .layers = {image(0, 4)}, .manifest = small_checkpoint(4), .num_layers = 2});
    writer.finish(10);
    EXPECT_THAT(writer.take_note().value_or(""),
                HasSubstr("step-00000004.part-0-0/rank-1.written: is damaged: its lines must be \"NAME BYTES HASH\""));
  }
}

TEST_F(CheckpointWriterTest, AFileThatCannotGrowIsSaid) {
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

TEST_F(CheckpointWriterTest, WithoutAThreadTheCheckpointIsGivenUpAndTheRunGoesOn) {
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
