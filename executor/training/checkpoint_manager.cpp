#include "executor/training/checkpoint_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/training/checkpoint_layers.h"
#include "executor/training/policy/run_clock.h"

namespace frostpipe {
namespace {

constexpr int kLongestWaitSeconds = 120;

}  // namespace

CheckpointManager::CheckpointManager(const CheckpointPolicy& policy, const std::filesystem::path& root, int round,
                                     Communicator& communicator, std::function<void(const std::string&)> note,
                                     std::unique_ptr<CheckpointManager> before)
    : root_(root),
      round_(round),
      communicator_(communicator),
      note_(std::move(note)),
      schedule_(policy, steady_now_ns()),
      writer_(std::make_unique<CheckpointWriter>(root, communicator.rank(), policy.keep)),
      is_clean_(round == 0) {
  if (!before) return;
  earlier_writers_ = std::move(before->earlier_writers_);
  earlier_writers_.push_back(std::move(before->writer_));
}

bool CheckpointManager::still_writes_for_earlier_rounds() const {
  return std::any_of(earlier_writers_.begin(), earlier_writers_.end(),
                     [](const auto& writer) { return writer->busy(); });
}

/// No rank still writes for them.
void CheckpointManager::forget_earlier_rounds() {
  if (is_clean_) return;
  is_clean_ = true;
  earlier_writers_.clear();
  if (communicator_.rank() == 0) remove_attempts_before(root_, round_);
}

bool CheckpointManager::is_due(int step) {
  if (!schedule_.asks_before(step, steady_now_ns())) return false;
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  CheckpointSchedule::Proposal proposal;
  if (communicator_.rank() == 0) proposal = schedule_.propose(step, steady_now_ns());
  const std::vector<double> sums =
      communicator_.sum({writer_->busy() ? 1.0 : 0.0, writer_->failed() ? 1.0 : 0.0, proposal.is_due ? 1.0 : 0.0,
                         static_cast<double>(proposal.next_question), still_writes_for_earlier_rounds() ? 1.0 : 0.0});
  const bool is_busy = sums[0] > 0, has_failed = sums[1] > 0, is_clear = sums[4] == 0;
  if (has_failed) writer_->give_up("a rank could not write its part");
  if (is_clear) forget_earlier_rounds();
  return schedule_.decide(step, {.is_due = sums[2] > 0, .next_question = static_cast<int>(sums[3])}, is_busy,
                          steady_now_ns());
}

void CheckpointManager::write(const Checkpoint& snapshot, RankSession& session) {
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  const int num_layers = static_cast<int>(session.phase().partition.back().end);
  CheckpointPart part{.step = snapshot.step,
                      .attempt = attempt_name(round_, num_written_++),
                      .layers = layers_to_write(session, num_layers, communicator_),
                      .manifest = std::nullopt,
                      .num_layers = num_layers};
  if (communicator_.rank() == 0) part.manifest = snapshot;
  writer_->start(std::move(part));
  schedule_.record_written(steady_now_ns());
}

void CheckpointManager::write_and_hold(const Checkpoint& snapshot, RankSession& session) {
  finish();
  writer_->hold(snapshot.step);
  write(snapshot, session);
}

void CheckpointManager::finish() {
  const WithoutVirtualTime on_the_host(communicator_.control_group());
  const bool completes = communicator_.rank() == 0;
  if (!completes) writer_->finish(kLongestWaitSeconds);
  if (communicator_.sum({writer_->failed() ? 1.0 : 0.0}).front() > 0)
    writer_->give_up("a rank could not write its part");
  if (completes) writer_->finish(kLongestWaitSeconds);
  earlier_writers_.clear();  // each ends before it is gone
  communicator_.control_group().barrier();
  is_clean_ = true;
  if (completes) remove_attempts_before(root_, round_ + 1);
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
  try {
    const Checkpoint checkpoint = read_checkpoint(path_of(step));
    for (int layer = 0; layer < num_layers(checkpoint); ++layer) open_layer(checkpoint, layer);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace frostpipe
