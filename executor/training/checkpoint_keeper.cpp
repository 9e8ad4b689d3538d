#include "executor/training/checkpoint_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "executor/models/layer_images.h"

namespace frostpipe {
namespace {

constexpr double kSecondsBetweenQuestions = 5;
constexpr int kLongestWaitSeconds = 120;

/// Layers that this rank writes: trainable ones are spread over the replicas, frozen ones are with the first rank that
/// has parked their moments, else spread as well.
std::vector<LayerImage> own_layers(RankSession& session, int num_layers, Communicator& communicator) {
  const auto world = static_cast<std::size_t>(communicator.world_size());
  const int self = communicator.rank();
  std::vector<double> parked(world * num_layers, 0.0);
  for (const auto& [layer, moments] : session.parked()) parked[self * num_layers + layer] = 1;
  parked = communicator.sum(std::move(parked));
  const Phase& phase = session.phase();
  std::vector<LayerImage> images;
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::vector<int> replicas = replicas_of(phase.layout, stage_of_layer(phase.partition, layer));
    int writer = replicas[layer % replicas.size()];
    bool is_parked = false;
    for (std::size_t rank = world; layer < phase.first_trainable_layer && rank-- > 0;) {
      if (parked[rank * num_layers + layer] == 0) continue;
      writer = static_cast<int>(rank);
      is_parked = true;
    }
    if (writer != self) continue;
    images.push_back(is_parked ? image_of(layer, session.parked().at(layer))
                               : image_of(layer, session.layers().at(layer)));
  }
  return images;
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const CheckpointPolicy& policy, const std::filesystem::path& root, int forming,
                                   Communicator& communicator, std::function<void(const std::string&)> note,
                                   std::unique_ptr<CheckpointKeeper> before)
    : policy_(policy),
      root_(root),
      forming_(forming),
      communicator_(communicator),
      note_(std::move(note)),
      writer_(std::make_unique<CheckpointWriter>(root, communicator.rank(), policy.keep)),
      is_clean_(forming == 0) {
  if (!before) return;
  earlier_writers_ = std::move(before->earlier_writers_);
  earlier_writers_.push_back(std::move(before->writer_));
}

bool CheckpointKeeper::still_writes_for_earlier_formings() const {
  return std::any_of(earlier_writers_.begin(), earlier_writers_.end(),
                     [](const auto& writer) { return writer->busy(); });
}

/// No rank still writes for them.
void CheckpointKeeper::forget_earlier_formings() {
  if (is_clean_) return;
  is_clean_ = true;
  earlier_writers_.clear();
  if (communicator_.rank() == 0) remove_attempts_before(root_, forming_);
}

bool CheckpointKeeper::is_due(int step) {
  if (policy_.every_steps == 0 && policy_.every_minutes == 0) return false;
  if (!first_step_) {
    first_step_ = step;
    next_question_ = step + 1;
    last_question_step_ = step;
    last_question_ = Clock::now();
  }
  if (step < next_question_) return false;

  const auto seconds_since = [](Clock::time_point moment) {
    return std::chrono::duration<double>(Clock::now() - moment).count();
  };
  const bool by_steps = policy_.every_steps > 0 && (postponed_ || step % policy_.every_steps == 0);
  const bool by_time = policy_.every_minutes > 0 && seconds_since(last_written_) >= 60 * policy_.every_minutes;
  int next = std::numeric_limits<int>::max();
  if (policy_.every_steps > 0) next = step + policy_.every_steps - step % policy_.every_steps;
  if (policy_.every_minutes > 0) {
    const double per_step = std::max(1e-6, seconds_since(last_question_) / std::max(1, step - last_question_step_));
    const double pause = std::min(kSecondsBetweenQuestions, 60 * policy_.every_minutes / 4);
    next = std::min(next, step + static_cast<int>(std::clamp(pause / per_step, 1.0, 1e6)));
  }
  const bool speaks = communicator_.rank() == 0;
  const std::vector<double> sums = communicator_.sum(
      {writer_->busy() ? 1.0 : 0.0, writer_->failed() ? 1.0 : 0.0, speaks && (by_steps || by_time) ? 1.0 : 0.0,
       speaks ? static_cast<double>(next) : 0.0, still_writes_for_earlier_formings() ? 1.0 : 0.0});
  last_question_ = Clock::now();
  last_question_step_ = step;
  next_question_ = static_cast<int>(sums[3]);
  if (sums[1] > 0) writer_->give_up("a rank could not write its part");
  if (sums[4] == 0) forget_earlier_formings();
  if (sums[2] == 0) return false;
  postponed_ = sums[0] > 0;
  if (postponed_) next_question_ = step + 1;  // the last one is still being written
  return !postponed_;
}

void CheckpointKeeper::write(const Checkpoint& checkpoint, RankSession& session) {
  const int num_layers = static_cast<int>(session.phase().partition.back().end);
  CheckpointPart part{.step = checkpoint.step,
                      .attempt = attempt_name(forming_, num_written_++),
                      .layers = own_layers(session, num_layers, communicator_),
                      .manifest = std::nullopt,
                      .num_layers = num_layers};
  if (communicator_.rank() == 0) part.manifest = checkpoint;
  writer_->start(std::move(part));
  last_written_ = Clock::now();
}

void CheckpointKeeper::write_and_hold(const Checkpoint& checkpoint, RankSession& session) {
  finish();
  writer_->hold(checkpoint.step);
  write(checkpoint, session);
}

void CheckpointKeeper::finish() {
  const bool completes = communicator_.rank() == 0;
  if (!completes) writer_->finish(kLongestWaitSeconds);
  if (communicator_.sum({writer_->failed() ? 1.0 : 0.0}).front() > 0)
    writer_->give_up("a rank could not write its part");
  if (completes) writer_->finish(kLongestWaitSeconds);
  earlier_writers_.clear();  // each ends before it is gone
  communicator_.everyone().barrier();
  is_clean_ = true;
  if (completes) remove_attempts_before(root_, forming_ + 1);
  report();
}

void CheckpointKeeper::report() {
  if (const auto text = writer_->take_note())
    note_(communicator_.rank() == 0 ? *text : fmt::format("rank {}: {}", communicator_.rank(), *text));
}

}  // namespace frostpipe
