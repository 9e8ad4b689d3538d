#include "tests/executor/runtime/repeated_steps.h"

#include <memory>
#include <numeric>
#include <string>

#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {

Steps repeated_steps(Job& job, const Phase& phase, bool cuda_graphs, const RepeatedSteps& how) {
  constexpr int kPeriod = 7;  // of small_samples' lengths
  job.cuda_graphs = cuda_graphs;
  const std::unique_ptr<Samples> data = small_samples(job.config, 2 * kPeriod);
  std::vector<int> order(2 * kPeriod);
  std::iota(order.begin(), order.end(), 0);
  const std::vector<int> backwards(order.rbegin(), order.rend());
  const MiniBatch a = mini_batch(*data, order, kPeriod, 0), b = mini_batch(*data, order, kPeriod, 1),
                  c = mini_batch(*data, backwards, kPeriod, 0);
  CHECK_RANK(a.lengths == b.lengths, "small_samples has this period");
  RankSession session = job.session(*data, how.optimizer, how.dtype);
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(job.config, layer, kSeed, state);
  });
  Steps steps;
  const std::vector<const MiniBatch*> batches{&a, &b, &a, &b, &c, &b, &a, &c};
  for (int step = 0; step < static_cast<int>(batches.size()); ++step) {
    Trace trace;
    const UpdateRule rule{.optimizer = how.optimizer,
                          .learning_rate = how.learning_rate * (1 + step % 3),
                          .weight_decay = 0.125,
                          .step = step + 1};
    const MiniBatch* const next = step + 1 < static_cast<int>(batches.size()) ? batches[step + 1] : nullptr;
    steps.losses.push_back(
        session.runner()->run_iteration(*batches[step], next, step, {.rule = rule, .gradient_clip = 0.5}, trace).loss);
  }
  for (const auto& [layer, state] : session.layers()) steps.weights[layer] = state.weights.to(at::kCPU, at::kDouble);
  return steps;
}

}  // namespace frostpipe::test
