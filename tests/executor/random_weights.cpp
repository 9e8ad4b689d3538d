#include "tests/executor/random_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <random>

#include "executor/device/memory_meter.h"
#include "executor/models/shards.h"

namespace frostpipe::test {
namespace {

void fill_uniform(at::Tensor parameter, double bound, std::mt19937_64& random) {
  const UncountedMemory staging;
  at::Tensor values = at::empty({parameter.numel()}, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.data_ptr<double>()[i] = bound * (2 * (static_cast<double>(random() >> 11) * 0x1p-53) - 1);
  parameter.copy_(values.view(parameter.sizes()));
}

}  // namespace

void randomise_layer(const TransformerConfig& config, int layer, std::uint64_t seed, LayerState& state) {
  const at::NoGradGuard no_grad;
  const std::vector<ParameterSpec> specs = parameters_of(config, layer);
  const LayerState whole = make_layer_state(specs, {state.weights.scalar_type(), state.weights.scalar_type()}, at::kCPU,
                                            /*trains=*/false, /*num_moments=*/0);
  const std::vector<at::Tensor> parameters = kept_parameters(whole);
  std::mt19937_64 random(seed * 7919 + static_cast<std::uint64_t>(layer));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    fill_uniform(parameters[i], specs[i].matrix ? 0.3 : 0.1, random);
    if (specs[i].start == ParameterSpec::Start::one) parameters[i].add_(1);
    if (specs[i].names[0] != "lm_head.weight" || !config.ties_embeddings) continue;
    std::mt19937_64 as_embedding(seed * 7919);
    fill_uniform(parameters[i], 0.3, as_embedding);
  }
  state.weights.copy_(taken(specs, whole.weights, {}, {.slice = state.slice}));
}

}  // namespace frostpipe::test
