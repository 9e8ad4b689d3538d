#include "tests/executor/runtime/check_gradients.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "executor/models/shards.h"
#include "plan/stages.h"
#include "tests/executor/agreed_loss.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/reference_model.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

struct Bounds {
  double relative, overall;
};
Bounds bounds_of(DType dtype) { return dtype == DType::kFloat32 ? Bounds{1e-5, 1e-6} : Bounds{1e-11, 1e-13}; }

/// Computed once for all layouts, schedules and numbers of micro-batches, since it does not depend on them.
const Expected& expected_of(Job& job, const Samples& data, const MiniBatch& batch, DType dtype,
                            int frozen_first_layer) {
  const auto [found, is_new] = job.expected.try_emplace({batch.samples.size(), dtype, frozen_first_layer});
  Expected& expected = found->second;
  if (is_new) {
    ReferenceModel reference(job.config, kSeed, layer_types_of(dtype).kept);
    if (frozen_first_layer > 0) reference.cut_tie();
    expected.loss = reference.loss_and_gradients(job.whole(data, batch, dtype), frozen_first_layer);
    double squares = 0;
    for (int layer = 0; layer < 8; ++layer) {
      expected.gradients.push_back(reference.gradient(layer));
      if (layer >= frozen_first_layer) squares += std::pow(l2(expected.gradients.back()), 2);
    }
    expected.norm = std::sqrt(squares);
  }
  return expected;
}

std::string text_of(const Job& job, const Phase& phase, DType dtype, int num_samples) {
  return name_of(job.config) +
         fmt::format(": p={} d={} t={}{} m={} {} first trainable layer {} {} {} samples, recompute {}",
                     phase.layout.pipeline_parallel_size, phase.layout.data_parallel_size,
                     phase.layout.tensor_parallel_size, phase.layout.sequence_parallel ? " split tokens" : "",
                     phase.num_micro_batches, schedule_text(phase), phase.first_trainable_layer, to_string(dtype),
                     num_samples, phase.recompute ? to_string(*phase.recompute) : "nothing");
}

std::vector<int> first_samples(int num_samples) {
  std::vector<int> order(num_samples);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void start(RankSession& session, const Phase& phase, const TransformerConfig& config) {
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(config, layer, kSeed, state);
  });
}

/// One iteration's gradients, norm and loss.
void compare(Job& job, const Phase& phase, RankSession& session, const IterationResult& result,
             const Expected& reference, const Bounds& bounds, const std::string& what) {
  const auto [relative, overall] = bounds;
  for (auto& [layer, state] : session.layers()) {
    CHECK_RANK(state.trains() == (layer >= phase.first_trainable_layer), what);
    if (!state.trains()) continue;
    const at::Tensor expected = taken(parameters_of(job.config, layer), reference.gradients[layer], {},
                                      {.slice = state.slice}),
                     gradients = state.gradients.to(at::kCPU);
    std::int64_t offset = 0;
    for (const ParameterSpec& spec : cut(state.whole, state.slice)) {
      const at::Tensor g0 = expected.narrow(0, offset, spec.count()), g = gradients.narrow(0, offset, spec.count());
      const double error = l2(g - g0);
      CHECK_RANK(error <= relative * l2(g0) + overall * reference.norm,
                 fmt::format("{}: layer {} {}: error {}, gradient {}, all {}", what, layer, spec.names[0], error,
                             l2(g0), reference.norm));
      offset += spec.count();
    }
  }
  // If tensors are as near as above, their sums of squares are within 2 e |G0|.
  for (std::size_t block = 0; block < result.block_square_sums.size(); ++block) {
    double expected = 0;
    for (int layer = 1; layer + 1 < num_layers(job.config); ++layer)
      if (block_of_layer(job.config, layer) == static_cast<int>(block))
        expected += std::pow(l2(reference.gradients[layer]), 2);
    CHECK_RANK(std::abs(result.block_square_sums[block] - expected) <= 3 * relative * std::pow(reference.norm, 2),
               fmt::format("{}: block {}: square sum {} instead of {}", what, block, result.block_square_sums[block],
                           expected));
  }
  const double loss = agreed_loss(*job.communicator, result);
  CHECK_RANK(std::abs(loss - reference.loss) <= relative * 10,
             fmt::format("{}: loss {} instead of {}", what, loss, reference.loss));
}

}  // namespace

void check_gradients(Job& job, const Phase& phase, DType dtype, int num_samples) {
  const int frozen_first_layer = phase.first_trainable_layer;
  const std::string what = text_of(job, phase, dtype, num_samples);
  const std::unique_ptr<Samples> samples = small_samples(job.config, num_samples);
  const Samples& data = *samples;
  const std::vector<int> order = first_samples(num_samples);
  const MiniBatch batch = mini_batch(data, order, num_samples, 0);
  RankSession session = job.session(data, Optimizer::kSgd, dtype);
  start(session, phase, job.config);
  // With graphs: eagerly, during the capture, and replayed.
  for (const std::string how : job.cuda_graphs ? std::vector{"", ", captured", ", replayed"} : std::vector{""}) {
    for (auto& [layer, state] : session.layers())
      if (state.trains()) state.gradients.zero_();
    Trace trace;
    const IterationResult result = session.runner()->run_iteration(
        batch, nullptr, 0, {.rule = {.optimizer = Optimizer::kSgd}, .applied = false}, trace);
    compare(job, phase, session, result, expected_of(job, data, batch, dtype, frozen_first_layer), bounds_of(dtype),
            what + how);
  }
}

void check_nothing_is_left(Job& job, const Phase& phase) {
  const int num_samples = 11;
  const std::unique_ptr<Samples> data = small_samples(job.config, num_samples);
  const std::vector<int> order = first_samples(num_samples);
  const MiniBatch batch = mini_batch(*data, order, num_samples, 0);
  RankSession session = job.session(*data, Optimizer::kSgd, DType::kFloat32);
  start(session, phase, job.config);
  const bool overlaps = weight_delay(phase) > 0;
  std::vector<Bytes> alive;
  for (int step = 0; step < (overlaps ? 6 : 3); ++step) {
    const UpdateRule rule{.optimizer = Optimizer::kSgd, .learning_rate = 0.01, .step = step + 1};
    const bool drains = step % 3 == 2;
    Trace trace;
    session.runner()->run_iteration(batch, &batch, step, {.rule = rule}, trace, drains);
    CHECK_RANK(session.runner()->has_begun() == (overlaps && !drains), "the next iteration");
    alive.push_back(job.device->live_bytes());
    CHECK_RANK(alive.back() == alive[overlaps && drains ? 2 : 0],
               fmt::format("{}: {} bytes are alive after the iterations",
                           text_of(job, phase, DType::kFloat32, num_samples), fmt::join(alive, ", ")));
  }
  session.runner()->finish_sends();
}

}  // namespace frostpipe::test
