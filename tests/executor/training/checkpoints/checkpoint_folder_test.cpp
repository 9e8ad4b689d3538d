// Oracle: checkpoints that the ranks write, each in a folder of its own, as on hosts that share no files.
#include "executor/training/checkpoints/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

/// A whole checkpoint of a model without layers. Runs differ in their seeds.
void write_checkpoint(const std::filesystem::path& root, int step, std::uint64_t seed) {
  Checkpoint checkpoint{.step = step, .settings = {.seed = seed}};
  checkpoint.plan.phases = {Phase{}};
  checkpoint.plan.phases[0].partition = {{0, 1}};
  CheckpointWriter writer(root, 0, 9);
  writer.start({.step = step, .attempt = attempt_name(0, step), .layers = {}, .manifest = checkpoint, .num_layers = 0});
  writer.finish(10);
}

std::uint64_t seed_in(const std::filesystem::path& root, int step) {
  return read_checkpoint(checkpoint_path(root, step)).settings.seed;
}

RANK_TEST(CheckpointFolders, AnotherRunsCheckpointIsReplacedInTheRunsOwnFolderOnly, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const std::filesystem::path host =
      std::filesystem::temp_directory_path() / ("frostpipe_folders_" + std::to_string(getpid()));
  const std::uint64_t own_seed = 10 + self.rank;
  for (const char* const root : {"own", "elsewhere"}) write_checkpoint(host / root, 4, own_seed);
  const CheckpointFolder folder{.root = host / "own", .folder_of_rank = {0, 1}, .hosts = {"a", "b"}, .start = {}};
  std::string refusal;
  try {
    bring_checkpoint_together(folder, host / "elsewhere", *communicator);
  } catch (const InvalidInput& error) {
    refusal = error.what();
  }
  CHECK_RANK(refusal.find("it is a checkpoint of another run, or damaged") != std::string::npos, refusal);
  CHECK_RANK(seed_in(host / "elsewhere", 4) == own_seed, "it stays");
  bring_checkpoint_together(folder, host / "own", *communicator);
  CHECK_RANK(seed_in(host / "own", 4) == 10, "all have that of rank 0");
  std::filesystem::remove_all(host);
}

}  // namespace
}  // namespace frostpipe::test
