#include <random>

#include "plan/memory.h"
#include "plan/recompute.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::flat_profile;

std::vector<LayerCost> random_costs(std::size_t num_layers, std::mt19937& numbers) {
  std::vector<LayerCost> costs(num_layers);
  const auto bytes = [&] { return static_cast<Bytes>(numbers() % 1000); };
  for (LayerCost& cost : costs)
    cost = {.output_activation_bytes = bytes(),
            .saved_activation_bytes = bytes(),
            .workspace_bytes = bytes(),
            .split_backward = SplitBackward{.kept_bytes = bytes()}};
  return costs;
}

/// Returns the weights, gradients, workspace and saved activations of a stage, added layer by layer and segment by
/// segment as memory.h describes them.
RankMemory added_up(const Phase& phase, const Model& model, std::span<const LayerCost> costs, LayerRange stage) {
  const int first = phase.first_trainable_layer;
  RankMemory memory;
  Bytes transient = 0;
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    const Bytes weights = 4 * model.layers[layer].parameter_count;
    memory.weights += weights;
    const bool trains = layer >= first;
    memory.gradients += trains ? weights : 0;
    memory.optimizer_state += trains ? 2 * weights : 0;
    transient = std::max(transient, costs[layer].workspace_bytes + (trains ? 0 : costs[layer].output_activation_bytes));
  }
  const auto output = [&](int layer) { return layer < 0 ? 0 : costs[layer].output_activation_bytes; };
  Bytes again = 0;
  if (stage.end > first) memory.until_backward = output(std::max(stage.begin, first) - 1);
  for (const auto& [range, recomputed] : recompute_segments(phase.recompute, model, stage, first)) {
    Bytes saved = 0, split = 0;
    for (int layer = range.begin; layer < range.end; ++layer) {
      saved += costs[layer].saved_activation_bytes;
      if (splits_backward(phase)) split += split_backward_of(costs[layer], layer > first).kept_bytes;
    }
    const Bytes next_input = range.end < stage.end ? output(range.end - 1) : 0;
    const Bytes kept = recomputed ? next_input : saved;
    again += splits_backward(phase) ? split - kept : 0;
    again = std::max(again, recomputed ? saved : 0);
    memory.until_backward += kept;
    memory.until_weights += split;
  }
  const bool is_last = stage.end == static_cast<int>(model.layers.size());
  memory.workspace = transient + again + output(stage.begin - 1) + (is_last ? 0 : output(stage.end - 1));
  if (stage.end <= first && !is_last) memory.sent_ahead = phase.num_micro_batches * output(stage.end - 1);
  return memory;
}

/// Returns two stages of `model` with three micro-batches of samples of 16 tokens.
Phase phase_of(const Model& model) {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 5}, {5, static_cast<int>(model.layers.size())}};
  phase.num_micro_batches = 3;
  phase.tokens = phase.longest_tokens = 16;
  return phase;
}

// Oracle: every stage added up layer by layer.
TEST(StageMemory, OfAnyRangeIsThatOfItsLayersAddedUp) {
  std::mt19937 numbers(1);
  const Model model = chain_model(5);
  const Profile profile = flat_profile(model, 4, 16);
  const int n = static_cast<int>(model.layers.size());
  Phase phase = phase_of(model);
  std::vector<Recompute> ways = {std::nullopt};
  ways.insert(ways.end(), kRecomputeModes.begin(), kRecomputeModes.end());
  for (const std::string schedule : {"1F1B", "ZB-H1"})
    for (const Recompute& recompute : ways)
      for (const int first : {0, 1, 4, 7, n - 1}) {
        phase.schedule = schedule;
        phase.recompute = recompute;
        phase.first_trainable_layer = first;
        const StageMemory memory(phase, profile, Optimizer::kAdamW, DType::kFloat32);
        const std::vector<LayerCost> costs = random_costs(n, numbers);
        const StageMemory::OnDevice on_device(memory, costs, {0, n});
        for (int begin = 0; begin < n; ++begin)
          for (int end = begin + 1; end <= n; ++end) {
            SCOPED_TRACE(schedule + ", first trainable layer " + std::to_string(first) + ", layers " +
                         to_string(Partition{{begin, end}}));
            EXPECT_EQ(on_device.of({begin, end}), added_up(phase, model, costs, {begin, end}));
            EXPECT_EQ(memory.of({begin, end}, costs), on_device.of({begin, end}));
          }
      }
}

// Oracle: the same stage by itself, for which nothing outside of it is summed.
TEST(StageMemory, OfTokenSlicesInBfloat16IsTheSameForARangeAndByItself) {
  std::mt19937 numbers(2);
  const Model model = chain_model(5);
  const Profile profile = flat_profile(model, 4, 16);
  const int n = static_cast<int>(model.layers.size());
  Phase phase = phase_of(model);
  phase.token_slices = equal_slices(16, 4);
  for (const Recompute& recompute : {Recompute(), Recompute(RecomputeMode::attention)})
    for (const int first : {0, 4}) {
      phase.recompute = recompute;
      phase.first_trainable_layer = first;
      const StageMemory memory(phase, profile, Optimizer::kAdamW, DType::kBFloat16);
      const std::vector<LayerCost> costs = random_costs(n, numbers);
      const StageMemory::OnDevice on_device(memory, costs, {0, n});
      for (int begin = 0; begin < n; ++begin)
        for (int end = begin + 1; end <= n; ++end)
          EXPECT_EQ(memory.of({begin, end}, costs), on_device.of({begin, end}));
    }
}

}  // namespace
}  // namespace frostpipe
