// Iterations on emulated ranks. Oracles: closed forms of schedules with equal stages, and the same ranks without delays
// of the host.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/emulation/emulated_stage.h"
#include "executor/runtime/rank_session.h"
#include "executor/training/checkpoints/checkpoint_manager.h"
#include "tests/executor/ranks.h"
#include "tests/executor/small_model.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe::test {
namespace {

constexpr Nanoseconds kUnit = 20'000;

/// A profile of 8 layers; in units 1 for a forward and 2 for a backward, which is all weight gradient, so that all
/// layers take the same time.
Profile profile_of_equal_layers() {
  return synthetic_profile(3, {{.forward_ns = kUnit,
                                .input_gradient_ns = 0,
                                .weight_gradient_ns = 2 * kUnit,
                                .frozen_forward_ns = kUnit,
                                .split_backward = SplitBackward{kUnit, kUnit, 0}}});
}

/// A stage that is late for every action, like a rank that the host has not woken in time.
class LateStage final : public StageCompute {
 public:
  LateStage(std::unique_ptr<StageCompute> inner, int milliseconds)
      : inner_(std::move(inner)), milliseconds_(milliseconds) {}
  at::Tensor make_activation(std::int64_t tokens) const override { return inner_->make_activation(tokens); }
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                       SampleRange next_share) override {
    inner_->begin_iteration(batch, share, next, next_share);
  }
  void cache_read(int micro_batch, SampleRange range) override { inner_->cache_read(micro_batch, range); }
  at::Tensor forward(Part part, SampleRange range, at::Tensor input) override {
    be_late();
    return inner_->forward(part, range, std::move(input));
  }
  void cache_write(int micro_batch, SampleRange range) override { inner_->cache_write(micro_batch, range); }
  at::Tensor backward(Part part, at::Tensor gradient) override {
    be_late();
    return inner_->backward(part, std::move(gradient));
  }
  at::Tensor input_gradient(Part part, at::Tensor gradient) override {
    be_late();
    return inner_->input_gradient(part, std::move(gradient));
  }
  void weight_gradient(Part part) override {
    be_late();
    inner_->weight_gradient(part);
  }
  at::Tensor looked_up_rows() const override { return inner_->looked_up_rows(); }
  void update(const UpdateRule& rule) override { inner_->update(rule); }
  at::Tensor loss() const override { return inner_->loss(); }
  at::Tensor evaluate(const MiniBatch& batch, at::Tensor input) override {
    return inner_->evaluate(batch, std::move(input));
  }
  AnswerShape answer_shape() const override { return inner_->answer_shape(); }

 private:
  /// Every third time.
  void be_late() {
    if (++num_actions_ % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_));
  }
  std::unique_ptr<StageCompute> inner_;
  int milliseconds_;
  int num_actions_ = 0;
};

class Factory final : public StageFactory {
 public:
  /// `milliseconds`: the delay of its stages.
  Factory(const Profile& profile, VirtualClock& clock, int milliseconds)
      : emulated_(profile, {.device_type = "cpu", .tensors = at::TensorOptions().dtype(at::kFloat)}, clock, nullptr),
        milliseconds_(milliseconds) {}
  LayerState make_layer(int layer, bool trains, const TensorSlice& slice) const override {
    return emulated_.make_layer(layer, trains, slice);
  }
  std::unique_ptr<StageCompute> make_stage(const Phase& phase, int stage, std::map<int, LayerState>& layers,
                                           const TensorRanks& ranks) const override {
    return std::make_unique<LateStage>(emulated_.make_stage(phase, stage, layers, ranks), milliseconds_);
  }

 private:
  EmulatedStageFactory emulated_;
  int milliseconds_;
};

/// A rank of a rehearsal, with micro-batches of one sample.
struct Rehearsal {
  explicit Rehearsal(const RankEnvironment& self)
      : rank(self.rank),
        profile(profile_of_equal_layers()),
        device(make_emulated_device(1)),
        communicator(Communicator::connect(self, *device)) {}

  /// The time of each iteration on this rank, in units, and the start and end of its actions.
  struct Result {
    std::vector<double> took;
    std::vector<Span> spans;
  };
  Result run(const Phase& phase, int late_by_milliseconds = 0, int num_steps = 2) {
    const Factory factory(profile, *device->virtual_clock(), late_by_milliseconds);
    RankSession session(profile.model, factory, *communicator, *device, Optimizer::kSgd, DType::kFloat32);
    session.start(phase, 0, [](int, LayerState&, std::map<int, OffloadedMoments>&) {});
    std::vector<int> samples(phase.num_micro_batches);
    std::iota(samples.begin(), samples.end(), 0);
    const MiniBatch batch{.samples = samples, .lengths = std::vector<std::int64_t>(samples.size(), kSyntheticTokens)};
    communicator->control_group().barrier();
    const Nanoseconds begin = device->now_ns();
    Result result;
    Trace trace;
    for (int step = 0; step < num_steps; ++step) {
      const MiniBatch* const next = step + 1 < num_steps ? &batch : nullptr;
      const Nanoseconds before = device->now_ns();
      session.runner()->run_iteration(batch, next, step, {.rule = {.optimizer = Optimizer::kSgd}}, trace);
      result.took.push_back(static_cast<double>(device->now_ns() - before) / kUnit);
    }
    for (Span span : trace.spans) {
      span.begin_ns -= begin;
      span.end_ns -= begin;
      result.spans.push_back(span);
    }
    return result;
  }

  int rank;
  Profile profile;
  std::unique_ptr<ComputeDevice> device;
  std::unique_ptr<Communicator> communicator;
};

void check_iterations(const std::string& what, const Rehearsal::Result& result, std::vector<double> expected) {
  CHECK_RANK(result.took == expected,
             fmt::format("{}: {} instead of {} units", what, fmt::join(result.took, ", "), fmt::join(expected, ", ")));
}

/// p stages of 8 / p layers take (m + p - 1) (F + B) with F = 8 / p and B = 16 / p units.
RANK_TEST(VirtualTime, OfEqualStagesIsTheClosedForm, 2, 4) {
  Rehearsal rehearsal(self);
  const int p = self.world_size;
  for (const std::string schedule : {"1F1B", "GPipe"}) {
    for (const int m : {1, p, 2 * p + 1}) {
      const double expected = (m + p - 1) * 24.0 / p;
      check_iterations(fmt::format("{}, m = {}", schedule, m), rehearsal.run(small_phase(p, 1, m, schedule, 0)),
                       {expected, expected});
    }
  }
}

/// A message's latency is paid p - 1 times up and p - 1 times down, and once more for the gradient norm. Occupying the
/// link for half a forward's time delays the last of GPipe's messages by this time at each link.
RANK_TEST(VirtualTime, OfMessagesIsTheLinks, 2, 4) {
  Rehearsal rehearsal(self);
  const int p = self.world_size, m = 2 * p;
  const Nanoseconds forward_ns = 8 / p * kUnit;
  const Bytes message = kSyntheticTokens * 4 * 4;
  const Bytes bandwidth = 1'000'000'000 * message / (forward_ns / 2);
  Cluster cluster = free_cluster(p);
  cluster.intra_node = {.point_to_point = {3 * kUnit, bandwidth}, .collective = {kUnit, 0}};
  rehearsal.communicator->emulate_links(cluster, 1);
  const double expected = (m + p - 1) * 24.0 / p + 2 * (p - 1) * (3 + 4.0 / p) + 1;
  check_iterations("GPipe", rehearsal.run(small_phase(p, 1, m, "GPipe", 0)), {expected, expected});
}

RANK_TEST(VirtualTime, IsTheSameHoweverLateTheHostWakesARank, 4) {
  Rehearsal rehearsal(self);
  for (const std::string schedule : {"1F1B", "Interleaved1F1B", "ZB-H1", "ZBVZeroBubble"}) {
    const int v = schedule == "Interleaved1F1B" || schedule == "ZBVZeroBubble" ? 2 : 1;
    const Phase phase = small_phase(4, 1, 8, schedule, 0, v);
    const Rehearsal::Result on_time = rehearsal.run(phase), late = rehearsal.run(phase, 1 + self.rank);
    CHECK_RANK(on_time.took == late.took, fmt::format("{}: {} and {}", schedule, on_time.took[0], late.took[0]));
    CHECK_RANK(on_time.spans == late.spans, schedule);
  }
}

/// The first rank is frozen: F takes 4 units there, F and B 12 on the other rank, which posts two receives when its
/// iteration begins, and number k when it receives number k - 2. So it posts them at 0, 0, 4, 16, ... 88 units, and in
/// the next iterations 124 and 244 units after 0, 0, 0, 12, ... 84. The first rank sends number k when number k of the
/// previous iteration has been requested: it never waits in its first iteration, and once for 8 units in its second
/// (which otherwise takes 40). Its third ends when everything has been requested, since nothing comes after it.
RANK_TEST(VirtualTime, AFrozenStageIsAnIterationAheadOfItsReceiver, 2) {
  Rehearsal rehearsal(self);
  const int m = 10;
  const Rehearsal::Result result = rehearsal.run(small_phase(2, 1, m, "1F1B", 4), /*late_by_milliseconds=*/0, 3);
  if (self.rank == 1) return check_iterations("trains", result, {4 + 12.0 * m, 12.0 * m, 12.0 * m});
  check_iterations("is frozen", result, {40, 48, 328 - 88});
}

/// As in the simulator, the first rank computes the next iteration's forwards (10 x 4 units) during the backwards of
/// the other one (10 x 8), which then never waits.
RANK_TEST(VirtualTime, AFrozenStageFillsGPipesBackward, 2) {
  Rehearsal rehearsal(self);
  const int m = 10;
  const Rehearsal::Result result = rehearsal.run(small_phase(2, 1, m, "GPipe", 4), /*late_by_milliseconds=*/0, 3);
  if (self.rank == 1) check_iterations("trains", result, {4 + 12.0 * m, 12.0 * m, 12.0 * m});
}

/// Oracle: the previous clocks, of which the second is ahead.
RANK_TEST(VirtualTime, CheckpointsTakeNone, 2) {
  Rehearsal rehearsal(self);
  Communicator& communicator = *rehearsal.communicator;
  VirtualClock& clock = *rehearsal.device->virtual_clock();
  const Factory factory(rehearsal.profile, clock, 0);
  RankSession session(rehearsal.profile.model, factory, communicator, *rehearsal.device, Optimizer::kSgd,
                      DType::kFloat32);
  session.start(small_phase(2, 1, 2, "1F1B", 0), 0, [](int, LayerState&, std::map<int, OffloadedMoments>&) {});
  const std::filesystem::path root = communicator.broadcast(
      (std::filesystem::temp_directory_path() / fmt::format("frostpipe_virtual_{}", getpid())).string(), 0);
  CheckpointManager checkpoints({.every_steps = 1}, shared_checkpoint_folder(root, self.world_size), 0, communicator,
                                [](const std::string& note) { fail_rank(__FILE__, __LINE__, note); });
  if (self.rank == 1) clock.pass(1'000 * kUnit);
  const Nanoseconds before = clock.now();
  CHECK_RANK(!checkpoints.is_due(0) && checkpoints.is_due(1), "after each step");
  CHECK_RANK(clock.now() == before, "to agree on a checkpoint");
  Checkpoint snapshot{.step = 1};
  snapshot.plan.phases = {session.phase()};
  snapshot.plan.world_size = self.world_size;
  checkpoints.write(snapshot, layers_of(session, communicator));
  checkpoints.finish();
  CHECK_RANK(clock.now() == before, "to write it");
  if (self.rank == 0) std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace frostpipe::test
