#include "executor/training/checkpoints/checkpoint_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "executor/training/policy/run_clock.h"

namespace frostpipe {
namespace {

constexpr int kLongestWaitSeconds = 120;

}  // namespace

CheckpointManager::CheckpointManager(const CheckpointPolicy& policy, CheckpointFolder folder, int round,
                                     Communicator& communicator, std::function<void(const std::string&)> note,
                                     std::unique_ptr<CheckpointManager> before)
    : folder_(std::move(folder)),
      round_(round),
      communicator_(communicator),
      note_(std::move(note)),
      schedule_(policy, steady_now_ns()),
      // Hosts do not wait for each other: one may have completed the newest checkpoint, and another only the one
      // before.
      writer_(std::make_unique<CheckpointWriter>(folder_.root, communicator.rank(),
                                                 folder_.is_shared() ? policy.keep : std::max(2, policy.keep))),
      is_clean_(round == 0) {
  if (!before) return;
  writer_->completed_everywhere(before->writer_->completed_everywhere());
  earlier_writers_ = std::move(before->earlier_writers_);
  earlier_writers_.push_back(std::move(before->writer_));
}

bool CheckpointManager::still_writes_for_earlier_rounds() const {
  return std::any_of(earlier_writers_.begin(), earlier_writers_.end(),
                     [](const auto& writer) { return writer->busy(); });
}

/// Removes the writers of earlier rounds and their files. Call it when no rank writes for earlier rounds any more.
void CheckpointManager::forget_earlier_rounds() {
  if (is_clean_) return;
  is_clean_ = true;
  earlier_writers_.clear();
  if (folder_.is_first_of_its_folder(communicator_.rank())) remove_attempts_before(folder_.root, round_);
}

/// Tells the writer which checkpoint all folders have completed, so that it is kept: if a folder cannot write its
/// share, newer checkpoints of the others are useless.
void CheckpointManager::learn_what_is_complete() {
  std::vector<double> completed(folder_.folder_of_rank.size(), 0.0);
  completed[communicator_.rank()] = writer_->completed();
  completed = communicator_.sum(std::move(completed));
  double everywhere = completed.front();
  for (int rank = 0; rank < communicator_.world_size(); ++rank)
    if (folder_.is_first_of_its_folder(rank)) everywhere = std::min(everywhere, completed[rank]);
  if (everywhere >= 0) writer_->completed_everywhere(static_cast<int>(everywhere));
}

bool CheckpointManager::is_due(int step) {
  if (!schedule_.asks_before(step, steady_now_ns())) return false;
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  const int self = communicator_.rank();
  const Nanoseconds now_ns = steady_now_ns();
  std::vector<double> sums{writer_->busy() ? 1.0 : 0.0, writer_->failed() ? 1.0 : 0.0,
                           self == 0 && schedule_.is_due(step, now_ns) ? 1.0 : 0.0,
                           still_writes_for_earlier_rounds() ? 1.0 : 0.0};
  const auto num_sums = static_cast<int>(sums.size());
  sums.resize(num_sums + communicator_.world_size());  // then the time per step, by rank
  sums[num_sums + self] = schedule_.seconds_per_step(step, now_ns);
  sums = communicator_.sum(std::move(sums));
  if (!folder_.is_shared()) learn_what_is_complete();
  const bool is_busy = sums[0] > 0, has_failed = sums[1] > 0, is_clear = sums[3] == 0;
  if (has_failed) writer_->give_up("a rank could not write its part");
  if (is_clear) forget_earlier_rounds();
  const double longest = *std::max_element(sums.begin() + num_sums, sums.end());
  return schedule_.decide(step, {.is_due = sums[2] > 0, .seconds_per_step = longest}, is_busy, steady_now_ns());
}

void CheckpointManager::write(const Checkpoint& snapshot, const CollectLayers& collect) {
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  CheckpointPart part{.step = snapshot.step,
                      .attempt = attempt_name(round_, num_written_++),
                      .layers = {},
                      .manifest = std::nullopt,
                      .num_layers = 0};
  const int self = communicator_.rank();
  LayersToWrite layers = collect(folder_.folder_of_rank, *writer_);
  part.layers = std::move(layers.own);
  for (int layer = 0; layer < static_cast<int>(layers.writers.size()); ++layer) {
    const std::vector<int>& writers = layers.writers[layer];
    const auto is_here = [&](int writer) { return folder_.folder_of_rank[writer] == folder_.folder_of_rank[self]; };
    if (std::ranges::any_of(writers, is_here))
      ++part.num_layers;
    else
      part.elsewhere.push_back({.name = layer_file_name(layer), .host = folder_.hosts[writers.front()]});
  }
  if (!folder_.is_shared()) part.host = folder_.hosts[self];
  if (folder_.is_first_of_its_folder(self)) {
    part.manifest = snapshot;
    part.manifest->attempt = folder_.is_shared() ? "" : folder_.start + "-" + part.attempt;
  }
  writer_->start(std::move(part));
  schedule_.record_written(steady_now_ns());
}

void CheckpointManager::write_and_hold(const Checkpoint& snapshot, const CollectLayers& collect) {
  finish();
  writer_->hold(snapshot.step);
  write(snapshot, collect);
}

void CheckpointManager::finish() {
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  const bool completes = folder_.is_first_of_its_folder(communicator_.rank());
  if (!completes) writer_->finish(kLongestWaitSeconds);
  if (communicator_.sum({writer_->failed() ? 1.0 : 0.0}).front() > 0)
    writer_->give_up("a rank could not write its part");
  if (completes) writer_->finish(kLongestWaitSeconds);
  earlier_writers_.clear();  // each destructor waits for its writer
  communicator_.control_group().barrier();
  is_clean_ = true;
  if (completes) remove_attempts_before(folder_.root, round_ + 1);
  report();
}

void CheckpointManager::start_over() {
  writer_->forget();
  schedule_.start_over();
}

void CheckpointManager::report() {
  if (const auto text = writer_->take_note())
    note_(communicator_.rank() == 0 ? *text : fmt::format("rank {}: {}", communicator_.rank(), *text));
}

std::string CheckpointManager::defect_of(int step) const {
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  try {
    if (!folder_.is_shared()) bring_checkpoint_together(folder_, path_of(step), communicator_);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  const bool looks = folder_.is_first_of_its_folder(communicator_.rank());
  for (std::string& defect : communicator_.gather(looks ? own_defect_of(step) : ""))
    if (!defect.empty()) return std::move(defect);
  return "";
}

void CheckpointManager::remove_after(int step) const {
  if (folder_.is_first_of_its_folder(communicator_.rank())) remove_checkpoints_after(folder_.root, step);
}

void CheckpointManager::set_completed(int step) {
  remove_after(step);
  if (!folder_.is_shared())
    writer_->set_completed(step);  // with a shared folder, a newer checkpoint is complete for all ranks at once
}

std::string CheckpointManager::own_defect_of(int step) const {
  try {
    const Checkpoint checkpoint = read_checkpoint(path_of(step));
    for (int layer = 0; layer < num_layers(checkpoint); ++layer) open_layer(checkpoint, layer);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace frostpipe
