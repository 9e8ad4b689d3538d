// Oracle: the folder that the test has made.
#include "executor/training/policy/resume_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RunSettings kSettings{.model_fingerprint = "m", .data_fingerprint = "d", .seed = 3, .num_steps = 20};

class ResumePointTest : public test::ScratchFolderTest {
 protected:
  /// A whole checkpoint of a model without layers.
  void write(int step, const std::filesystem::path& root) {
    Checkpoint snapshot{.step = step, .settings = kSettings};
    snapshot.plan.method = PlanMethod::static_pipeline;
    snapshot.plan.num_steps = 20;
    snapshot.plan.phases = {Phase{}};
    snapshot.plan.phases[0].partition = {{0, 1}};
    CheckpointWriter writer(root, 0, 10);
    writer.start({.step = step, .attempt = attempt_name(0, step), .layers = {}, .manifest = snapshot, .num_layers = 0});
    writer.finish(10);
    ASSERT_EQ(writer.take_note(), std::nullopt);
  }
  void write(int step) { write(step, checkpoints_folder(options_)); }
  void tear(int step) {
    std::filesystem::resize_file(checkpoint_path(checkpoints_folder(options_), step) / "plan.json", 10);
  }
  std::optional<int> found_step() {
    notes_.clear();
    const auto found =
        checkpoint_to_resume(options_, kSettings, [this](const std::string& note) { notes_.push_back(note); });
    return found ? std::optional(found->step) : std::nullopt;
  }
  std::vector<std::string> steps_in(const std::filesystem::path& root) {
    std::vector<std::string> names;
    for (const std::filesystem::path& folder : checkpoints_in(root)) names.push_back(folder.filename());
    return names;
  }
  TrainOptions options_{.output = folder_ / "run", .resume = "auto"};
  std::vector<std::string> notes_;
};

TEST_F(ResumePointTest, ARunWithoutCheckpointsBegins) { EXPECT_EQ(found_step(), std::nullopt); }

TEST_F(ResumePointTest, AutoTakesTheNewestWholeOneAndSaysWhichItPassesOver) {
  for (const int step : {2, 4, 6}) write(step);
  EXPECT_EQ(found_step(), 6);
  EXPECT_THAT(notes_, IsEmpty());
  tear(6);
  EXPECT_EQ(found_step(), 4);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("a checkpoint is skipped: ")));
}

TEST_F(ResumePointTest, AutoBeginsARunThatHasEnded) {
  write(4);
  file("run/summary.json");
  EXPECT_EQ(found_step(), std::nullopt);
}

TEST_F(ResumePointTest, AutoDoesNotThrowAwayARunOfWhichNoCheckpointIsWhole) {
  write(4);
  tear(4);
  EXPECT_EQ(message_of([&] { found_step(); }),
            "run/checkpoints: holds a run that has not ended, and no checkpoint of it is whole. Start over with "
            "--resume no, which removes them");
}

TEST_F(ResumePointTest, NoBeginsAndRemovesWhatInterruptedWritersHaveLeft) {
  write(4);
  file("run/checkpoints/step-00000006.part-0-1/layer-000.safetensors");
  options_.resume = "no";
  EXPECT_EQ(found_step(), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/checkpoints/step-00000006.part-0-1"));
  EXPECT_THAT(steps_in(checkpoints_folder(options_)), ElementsAre("step-00000004"))
      << "whole ones are not its business";
}

TEST_F(ResumePointTest, ACheckpointOrAFolderOfThemMayBeNamed) {
  for (const int step : {2, 4}) write(step, folder_ / "other");
  options_.resume = (folder_ / "other").string();
  EXPECT_EQ(found_step(), 4);
  options_.resume = checkpoint_path(folder_ / "other", 2).string();
  EXPECT_EQ(found_step(), 2);
  options_.resume = (folder_ / "nothing").string();
  EXPECT_THAT(message_of([&] { found_step(); }), HasSubstr("--resume: must name a folder that exists"));
  std::filesystem::create_directory(folder_ / "nothing");
  EXPECT_THAT(message_of([&] { found_step(); }),
              HasSubstr("--resume: must name a whole checkpoint, or a folder of such"));
}

TEST_F(ResumePointTest, AnotherRunsCheckpointIsRefusedByTheSettingThatDiffers) {
  write(4);
  RunSettings others = kSettings;
  others.seed = 4;
  EXPECT_EQ(message_of([&] { checkpoint_to_resume(options_, others, [](const std::string&) {}); }),
            "run/checkpoints/step-00000004: is of another run: seed: 3 in the checkpoint, 4 now. Continue it with the "
            "same options, or start over with --resume no");
}

TEST_F(ResumePointTest, CheckpointsAfterTheOneThatIsTakenGo) {
  for (const int step : {2, 4, 6}) write(step);
  const std::filesystem::path root = checkpoints_folder(options_);
  EXPECT_TRUE(keep_checkpoints_up_to(checkpoint_path(root, 4), 4, root));
  EXPECT_THAT(steps_in(root), ElementsAre("step-00000004", "step-00000002"));
}

TEST_F(ResumePointTest, TheOneThatIsTakenStaysHoweverItIsNamed) {
  const std::filesystem::path root = checkpoints_folder(options_);
  write(4);
  std::filesystem::create_directory_symlink(folder_ / "run", folder_ / "link");
  std::filesystem::create_directory_symlink(checkpoint_path(root, 4), folder_ / "chosen");
  for (const std::filesystem::path& name :
       {std::filesystem::relative(checkpoint_path(root, 4)), folder_ / "./run/checkpoints/step-00000004",
        folder_ / "run/../run/checkpoints/step-00000004", folder_ / "link/checkpoints/step-00000004",
        folder_ / "chosen"}) {
    EXPECT_TRUE(keep_checkpoints_up_to(name, 4, root)) << name;
    EXPECT_THAT(steps_in(root), ElementsAre("step-00000004")) << name;
  }
  EXPECT_TRUE(keep_checkpoints_up_to(checkpoint_path(root, 4), 4, folder_ / "link/./checkpoints"));
  EXPECT_THAT(steps_in(root), ElementsAre("step-00000004"));
}

TEST_F(ResumePointTest, ALinkAmongTheCheckpointsMayBeTaken) {
  write(4, folder_ / "other");
  const std::filesystem::path root = checkpoints_folder(options_);
  std::filesystem::create_directories(root);
  std::filesystem::create_directory_symlink(checkpoint_path(folder_ / "other", 4), checkpoint_path(root, 4));
  EXPECT_TRUE(keep_checkpoints_up_to(checkpoint_path(root, 4), 4, root));
  EXPECT_THAT(steps_in(root), ElementsAre("step-00000004"));
}

TEST_F(ResumePointTest, CheckpointsOfAnotherRunGo) {
  for (const int step : {2, 4}) write(step);
  write(3, folder_ / "other");
  const std::filesystem::path root = checkpoints_folder(options_);
  EXPECT_FALSE(keep_checkpoints_up_to(checkpoint_path(folder_ / "other", 3), 3, root));
  EXPECT_THAT(steps_in(root), IsEmpty());
  EXPECT_THAT(steps_in(folder_ / "other"), ElementsAre("step-00000003"));
  write(2);
  EXPECT_FALSE(keep_checkpoints_up_to("", 0, root)) << "the run begins";
  EXPECT_THAT(steps_in(root), IsEmpty());
}

}  // namespace
}  // namespace frostpipe
