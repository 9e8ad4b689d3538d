// Oracle: the uninterrupted session. In the same layout a session from a checkpoint has bitwise equal weights and
// moments; in another layout they are within the bounds of the exactness tests (SGD in double: 1e-10 of the weights).
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "executor/models/layer_images.h"
#include "executor/runtime/transformer_stage.h"
#include "executor/training/checkpoints/checkpoint_manager.h"
#include "plan/memory.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/small_model.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {
namespace {

/// A job with successive sessions, and its checkpoints.
class Job {
 public:
  Job(const RankEnvironment& self, Optimizer optimizer, LayerTypes types = {at::kDouble, at::kDouble})
      : config_(small_config()),
        model_(model_of(config_, "small")),
        device_(test_device(self.local_rank)),
        communicator_(Communicator::connect(self, *device_)),
        samples_(small_samples(config_, 11)),
        optimizer_(optimizer),
        factory_({.config = config_,
                  .model = model_,
                  .data = *samples_,
                  .types = types,
                  .device = device_->torch_device(),
                  .optimizer = optimizer}) {
    root_ = communicator_->broadcast(
        (std::filesystem::temp_directory_path() / fmt::format("frostpipe_resume_{}", getpid())).string(), 0);
    order_.resize(11);
    std::iota(order_.begin(), order_.end(), 0);
    batch_ = mini_batch(*samples_, order_, 11, 0);
  }
  ~Job() {
    communicator_->control_group().barrier();
    if (communicator_->rank() == 0) std::filesystem::remove_all(root_);
  }

  std::unique_ptr<RankSession> session() {
    return std::make_unique<RankSession>(model_, factory_, *communicator_, *device_, optimizer_, DType::kFloat64);
  }
  std::unique_ptr<RankSession> begun(const Phase& phase) {
    std::unique_ptr<RankSession> made = session();
    made->start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
      randomise_layer(config_, layer, 5, state);
    });
    return made;
  }
  std::unique_ptr<RankSession> resumed(const Phase& phase, int step) {
    const Checkpoint checkpoint = read_checkpoint(checkpoint_path(root_, step));
    std::unique_ptr<RankSession> made = session();
    made->start(phase, step, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>& offloaded) {
      restore_layer(checkpoint, layer, optimizer_moments(optimizer_), state, offloaded);
    });
    return made;
  }
  void train(RankSession& session, int from, int to) {
    for (int step = from; step < to; ++step) {
      Trace trace;
      const UpdateRule rule{.optimizer = optimizer_, .learning_rate = 0.01, .weight_decay = 0.1, .step = step + 1};
      if (session.runner())
        session.runner()->run_iteration(batch_, nullptr, step, {.rule = rule, .gradient_clip = 1}, trace);
    }
  }
  void save(RankSession& session, int step) {
    CheckpointManager manager({.keep = 5}, shared_checkpoint_folder(root_, communicator_->world_size()), num_saved_++,
                              *communicator_, [](const std::string& note) { fail_rank(__FILE__, __LINE__, note); });
    Checkpoint snapshot{.step = step};
    snapshot.plan.phases = {session.phase()};
    snapshot.plan.world_size = communicator_->world_size();
    manager.write(snapshot, layers_of(session, *communicator_));
    manager.finish();
  }

 private:
  TransformerConfig config_;
  Model model_;
  std::unique_ptr<ComputeDevice> device_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Samples> samples_;
  Optimizer optimizer_;
  TransformerStageFactory factory_;
  std::filesystem::path root_;
  std::vector<int> order_;
  MiniBatch batch_;
  int num_saved_ = 0;
};

void check_equal(RankSession& expected, RankSession& actual, const std::string& what) {
  const std::map<int, LayerState>& layers = expected.layers();
  CHECK_RANK(layers.size() == actual.layers().size(), what);
  for (const auto& [layer, state] : layers) {
    const LayerState& other = actual.layers().at(layer);
    CHECK_RANK(state.trains() == other.trains(), what);
    CHECK_RANK(at::equal(state.weights, other.weights), fmt::format("{}: weights of layer {}", what, layer));
    if (state.moments.first.defined()) {
      CHECK_RANK(
          at::equal(state.moments.first, other.moments.first) && at::equal(state.moments.second, other.moments.second),
          fmt::format("{}: moments of layer {}", what, layer));
    }
  }
}

void same_layout_goes_on_to_the_bit(const RankEnvironment& self, int p, int d,
                                    LayerTypes types = {at::kDouble, at::kDouble}) {
  Job job(self, Optimizer::kAdamW, types);
  for (const std::string schedule : {"GPipe", "1F1B", "ZB-H1"}) {
    if (schedule == "GPipe" && p == 1) continue;    // no other order
    if (schedule != "1F1B" && p * d > 4) continue;  // takes minutes
    for (const int frozen : {0, schedule == "GPipe" ? 7 : 3}) {
      const Phase phase = small_phase(p, d, 3, schedule, 0), then = small_phase(p, d, 3, schedule, frozen);
      const std::unique_ptr<RankSession> whole = job.begun(phase);
      job.train(*whole, 0, 2);
      if (frozen > 0) {
        Phase next = then;
        next.from_step = 2;
        whole->enter(next);
        job.train(*whole, 2, 3);
      }
      const int step = frozen > 0 ? 3 : 2;
      job.save(*whole, step);
      job.train(*whole, step, step + 2);
      const std::unique_ptr<RankSession> again = job.resumed(then, step);
      job.train(*again, step, step + 2);
      check_equal(*whole, *again, fmt::format("{} p={} d={} frozen {}", schedule, p, d, frozen));
      // Unfreezing: the offloaded moments are restored unchanged.
      if (frozen == 0) continue;
      const Phase thawed = small_phase(p, d, 3, schedule, 0);
      const std::unique_ptr<RankSession> unfrozen = job.resumed(thawed, step);
      for (const auto& [layer, moments] : whole->offloaded()) {
        const auto held = unfrozen->layers().find(layer);
        if (held == unfrozen->layers().end()) continue;
        CHECK_RANK(held->second.trains() && at::equal(held->second.moments.first.to(at::kCPU), moments.moments.first) &&
                       at::equal(held->second.moments.second.to(at::kCPU), moments.moments.second),
                   fmt::format("moments of layer {} after unfreezing", layer));
      }
    }
  }
}

RANK_TEST(Resume, OnTheSame1StagesX1ReplicasGoesOnToTheBit, 1) { same_layout_goes_on_to_the_bit(self, 1, 1); }
RANK_TEST(Resume, OnTheSame2StagesX1ReplicasGoesOnToTheBit, 2) { same_layout_goes_on_to_the_bit(self, 2, 1); }
RANK_TEST(Resume, OnTheSame3StagesX1ReplicasGoesOnToTheBit, 3) { same_layout_goes_on_to_the_bit(self, 3, 1); }
RANK_TEST(Resume, OnTheSame4StagesX1ReplicasGoesOnToTheBit, 4) { same_layout_goes_on_to_the_bit(self, 4, 1); }
RANK_TEST(Resume, OnTheSame1StagesX2ReplicasGoesOnToTheBit, 2) { same_layout_goes_on_to_the_bit(self, 1, 2); }
RANK_TEST(Resume, OnTheSame2StagesX2ReplicasGoesOnToTheBit, 4) { same_layout_goes_on_to_the_bit(self, 2, 2); }
RANK_TEST(Resume, OnTheSame3StagesX2ReplicasGoesOnToTheBit, 6) { same_layout_goes_on_to_the_bit(self, 3, 2); }
RANK_TEST(Resume, OnTheSame4StagesX2ReplicasGoesOnToTheBit, 8) { same_layout_goes_on_to_the_bit(self, 4, 2); }

RANK_TEST(Resume, WithFrozenLayersInBfloat16GoesOnToTheBit, 2) {
  same_layout_goes_on_to_the_bit(self, 2, 1, {at::kFloat, at::kFloat, at::kBFloat16});
}

/// Every layout of up to four ranks resumes from every other's checkpoint.
RANK_TEST(Resume, InAnotherLayoutTrainsTheSameModel, 4) {
  Job job(self, Optimizer::kSgd);
  struct Layout {
    int p, d, m;
    const char* schedule;
  };
  const Layout layouts[] = {{1, 1, 2, "GPipe"}, {4, 1, 2, "GPipe"}, {2, 2, 3, "1F1B"}, {1, 3, 2, "GPipe"}};
  for (const Layout& before : layouts) {
    const std::unique_ptr<RankSession> whole = job.begun(small_phase(before.p, before.d, before.m, before.schedule, 0));
    job.train(*whole, 0, 2);
    job.save(*whole, 2);
    for (const Layout& after : layouts) {
      const std::unique_ptr<RankSession> again =
          job.resumed(small_phase(after.p, after.d, after.m, after.schedule, 0), 2);
      job.train(*again, 2, 4);
      job.save(*again, 4);
      const std::unique_ptr<RankSession> expected =
          job.resumed(small_phase(before.p, before.d, before.m, before.schedule, 0), 2);
      job.train(*expected, 2, 4);
      const std::unique_ptr<RankSession> compared = job.resumed(expected->phase(), 4);
      for (const auto& [layer, state] : expected->layers()) {
        const at::Tensor other = compared->layers().at(layer).weights;
        CHECK_RANK((state.weights - other).norm().item<double>() <= 1e-10 * state.weights.norm().item<double>(),
                   fmt::format("{} x {} from {} x {}: layer {}", after.p, after.d, before.p, before.d, layer));
      }
    }
  }
}

}  // namespace
}  // namespace frostpipe::test
