#include "executor/profiler/layer_bench.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "executor/models/functions.h"
#include "executor/models/layers.h"
#include "executor/models/sliced_attention.h"
#include "executor/models/task.h"
#include "executor/models/weight_gradients.h"

namespace frostpipe {

LayerCost cost_from(const LayerSamples& kept) {
  const auto of_shape = [&kept](Bytes bytes) { return std::llround(static_cast<double>(bytes) / kept.longer); };
  const Nanoseconds backward = kept.backward.value();
  const Nanoseconds weight = std::min(backward, kept.backward_without_input.value());
  LayerCost cost{.forward_ns = kept.forward.value(),
                 .input_gradient_ns = backward - weight,
                 .weight_gradient_ns = weight,
                 .frozen_forward_ns = kept.frozen_forward.value(),
                 .output_activation_bytes = of_shape(kept.output_bytes),
                 .saved_activation_bytes = of_shape(kept.saved_activation_bytes),
                 .workspace_bytes = of_shape(kept.workspace_bytes)};
  if (kept.input.count > 0)
    cost.split_backward = {.input_ns = kept.input.value(),
                           .weight_ns = kept.weight.value(),
                           .kept_bytes = of_shape(kept.kept_for_weight_bytes)};
  return cost;
}

LayerClass class_of(const TransformerConfig& config, const Model& model, int layer) {
  const AttentionPattern pattern =
      has_attention(model.layers[layer].kind) ? config.pattern_of(block_of_layer(config, layer)) : AttentionPattern{};
  return {model.layers[layer].kind, makes_one_token(config, layer), pattern.window, pattern.rotary >= 0};
}

std::vector<std::int64_t> synthetic_lengths(int samples, int tokens, std::span<const int> data_lengths,
                                            std::int64_t most) {
  if (data_lengths.empty()) return std::vector<std::int64_t>(samples, tokens);
  std::vector<double> quantiles;  // the data's quantiles, in the middle of each sample's part of the distribution
  for (int i = 0; i < samples; ++i) {
    const double place = (i + 0.5) / samples * static_cast<double>(data_lengths.size());
    quantiles.push_back(data_lengths[std::min(data_lengths.size() - 1, static_cast<std::size_t>(place))]);
  }
  const double mean =
      std::accumulate(data_lengths.begin(), data_lengths.end(), 0.0) / static_cast<double>(data_lengths.size());
  // Lengths are cut at `most`, and the others are scaled up so that the mean stays.
  double sum = std::accumulate(quantiles.begin(), quantiles.end(), 0.0);
  double wanted = samples * (std::lround(mean) == tokens ? mean : tokens);
  for (std::size_t i = quantiles.size(); i > 1 && quantiles[i - 1] * wanted / sum > static_cast<double>(most); --i) {
    sum -= quantiles[i - 1];
    wanted -= static_cast<double>(most);
  }
  const double scale = wanted / sum;
  std::vector<std::int64_t> lengths;
  double exact = 0;  // unrounded tokens of the samples so far
  std::int64_t given = 0;
  for (const double quantile : quantiles) {
    exact += std::min(quantile * scale, static_cast<double>(most));
    lengths.push_back(std::clamp<std::int64_t>(std::llround(exact) - given, 1, most));
    given += lengths.back();
  }
  return lengths;
}

LayerBench::LayerBench(const TransformerConfig& config, const Model& model, std::map<int, LayerState>& layers,
                       ComputeDevice& device, const LayerTypes& types, std::vector<int> data_lengths,
                       TensorRanks tensor_ranks, double learned_part)
    : config_(config),
      model_(model),
      layers_(layers),
      device_(device),
      options_(at::TensorOptions().dtype(types.computed).device(device.torch_device())),
      data_lengths_(std::move(data_lengths)),
      frozen_type_(types.frozen),
      tensor_ranks_(std::move(tensor_ranks)),
      learned_part_(learned_part) {
  for (const auto& [layer, state] : layers_) {
    frozen_[layer].weights = state.weights;
    frozen_[layer].whole = state.whole;
    frozen_[layer].slice = state.slice;
    compute_in(frozen_[layer], frozen_type_);
  }
}

MicroBatch LayerBench::synthetic_batch(std::vector<std::int64_t> lengths) const {
  const bool has_pictures = config_.reads_pictures;
  const auto samples = static_cast<std::int64_t>(lengths.size());
  MicroBatch batch;
  batch.type = options_.dtype().toScalarType();
  batch.lengths = std::move(lengths);
  const at::TensorOptions numbers = at::TensorOptions().dtype(at::kLong).device(options_.device());
  const auto random_tokens = [&] {
    return at::randint(config_.vocab_size, {batch.num_tokens()}, at::TensorOptions().dtype(at::kLong))
        .to(options_.device());
  };
  batch.input = has_pictures
                    ? at::randn({samples, config_.num_channels, config_.image_size, config_.image_size}, options_)
                    : random_tokens();
  switch (config_.task) {
    case Task::question_answering:
      batch.labels = at::zeros({samples, 2}, numbers);
      break;
    case Task::causal_language_modeling:
      batch.labels = random_tokens();
      for (std::int64_t i = 0, offset = 0; i < samples; offset += batch.lengths[i++]) {
        const std::int64_t length = batch.lengths[i];
        const auto learned =
            std::clamp<std::int64_t>(std::llround(learned_part_ * static_cast<double>(length)), 1, length);
        batch.labels.narrow(0, offset, length - learned).fill_(kIgnored);
      }
      break;
    case Task::token_classification:
      batch.labels = at::zeros({batch.num_tokens()}, numbers);
      break;
    default:
      batch.labels = config_.problem_type == ProblemType::single_label
                         ? at::zeros({samples}, numbers)
                         : at::zeros({samples, num_outputs(config_)}, numbers.dtype(at::kDouble));
  }
  return batch.with_begins(options_.device());  // once for all layers, as in training
}

void LayerBench::start_times() {
  timed_.clear();
  device_.first_mark();
}

template <typename Call>
void LayerBench::time(Call call, std::vector<Mean*> means) {
  call();
  device_.mark();
  timed_.push_back(std::move(means));
}

void LayerBench::finish_times() {
  const std::vector<Nanoseconds> marks = device_.marked_ns();
  for (std::size_t i = 0; i < timed_.size(); ++i)
    for (Mean* const mean : timed_[i]) mean->add(marks[i + 1] - marks[i]);
}

at::Tensor LayerBench::run(int layer, std::span<const Parameter> parameters, const at::Tensor& input,
                           const MicroBatch& batch) {
  if (model_.layers[layer].kind != LayerKind::head)
    return forward_layer(config_, layer, parameters, input, batch, tensor_ranks_);
  return loss_sum(config_, forward_head(config_, parameters, input, batch, tensor_ranks_), batch, /*label_smoothing=*/0,
                  tensor_ranks_);
}

void LayerBench::measure(int micro_batch_size, int tokens, SamplesByClass& samples) {
  const MicroBatch batch =
      synthetic_batch(config_.reads_pictures ? std::vector<std::int64_t>(micro_batch_size, tokens)
                                             : synthetic_lengths(micro_batch_size, tokens, data_lengths_,
                                                                 config_.max_position_embeddings));
  start_times();
  const std::vector<at::Tensor> inputs = measure_passes(batch, samples);
  measure_first_backwards(inputs, batch, samples);
  for (const auto& [layer_class, layer] : last_of_class())
    measure_split(layer, inputs[layer].detach().requires_grad_(true), batch, samples[layer_class]);
  measure_split(0, at::Tensor(), batch, samples[class_of(config_, model_, 0)]);
  measure_frozen(inputs, batch, samples);
  finish_times();
  for (auto& [layer_class, kept] : samples)
    kept.longer = static_cast<double>(batch.num_tokens()) / (static_cast<double>(micro_batch_size) * tokens);
}

void LayerBench::measure_slice(int micro_batch_size, int tokens, int context, SamplesByClass& samples) {
  const MicroBatch whole = synthetic_batch(std::vector<std::int64_t>(micro_batch_size, context + tokens));
  const TokenRange range{context, context + tokens};
  KeyValuesOfLayers left, left_frozen;  // keys and values of the earlier tokens
  const TensorSlice slice_of_heads = slice_of(tensor_ranks_);
  const std::int64_t all = config_.key_value_heads(),
                     heads = all == 1 ? 1 : slice_of_heads.end_in(all) - slice_of_heads.begin_in(all),
                     width = 2 * heads * config_.size_of_head();
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
    if (!has_attention(model_.layers[layer].kind)) continue;
    const at::Tensor rows = at::randn({whole.num_tokens(), width}, options_);
    left.of(layer)->rows = rows;
    left.of(layer)->gradient =
        at::zeros({whole.num_tokens(), width}, options_.dtype(at::promoteTypes(at::kFloat, whole.type)));
    left_frozen.of(layer)->rows = rows.to(frozen_type_);
  }
  const MicroBatch slice = whole.slice(range, left);
  start_times();
  const std::vector<at::Tensor> inputs = measure_passes(slice, samples);
  measure_first_backwards(inputs, slice, samples);
  measure_frozen(inputs, whole.slice(range, left_frozen), samples);
  finish_times();
}

std::vector<at::Tensor> LayerBench::measure_passes(const MicroBatch& batch, SamplesByClass& samples) {
  const int num_layers = static_cast<int>(model_.layers.size());
  std::vector<at::Tensor> inputs(num_layers), outputs(num_layers);
  for (int layer = 0; layer < num_layers; ++layer) {
    LayerSamples& kept = samples[class_of(config_, model_, layer)];
    if (layer > 0) inputs[layer] = outputs[layer - 1].detach().requires_grad_(true);
    const Bytes before = device_.live_bytes();
    device_.reset_peak();
    time([&] { outputs[layer] = run(layer, layers_.at(layer).parameters, inputs[layer], batch); }, {&kept.forward});
    kept.output_bytes = static_cast<Bytes>(outputs[layer].nbytes());
    kept.saved_activation_bytes = device_.live_bytes() - before;
    kept.workspace_bytes = std::max(kept.workspace_bytes, device_.peak_bytes() - device_.live_bytes());
  }
  at::Tensor gradient;
  for (int layer = num_layers - 1; layer >= 0; --layer) {
    LayerSamples& kept = samples[class_of(config_, model_, layer)];
    const Bytes before = device_.live_bytes();
    device_.reset_peak();
    std::vector<Mean*> means{&kept.backward};
    if (layer == 0) means.push_back(&kept.backward_without_input);  // its input is token ids
    time([&] { torch::autograd::backward({outputs[layer]}, {gradient}); }, means);
    kept.workspace_bytes = std::max(kept.workspace_bytes, device_.peak_bytes() - before);
    if (layer > 0) gradient = inputs[layer].grad();
    outputs[layer] = at::Tensor();
  }
  for (auto& [layer, state] : layers_) state.gradients.zero_();
  return inputs;
}

std::map<LayerClass, int> LayerBench::last_of_class() const {
  std::map<LayerClass, int> last;
  for (int layer = 1; layer < static_cast<int>(model_.layers.size()); ++layer)
    last[class_of(config_, model_, layer)] = layer;
  return last;
}

void LayerBench::measure_first_backwards(const std::vector<at::Tensor>& inputs, const MicroBatch& batch,
                                         SamplesByClass& samples) {
  for (const auto& [layer_class, layer] : last_of_class()) {
    at::Tensor output, ones;
    time([&] {
      output = run(layer, layers_.at(layer).parameters, inputs[layer].detach(), batch);
      ones = at::ones_like(output);
    });
    time([&] { torch::autograd::backward({output}, {ones}); }, {&samples[layer_class].backward_without_input});
  }
  for (auto& [layer, state] : layers_) state.gradients.zero_();
}

void LayerBench::measure_frozen(const std::vector<at::Tensor>& inputs, MicroBatch batch, SamplesByClass& samples) {
  const at::NoGradGuard no_grad;
  batch.type = frozen_type_;
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
    at::Tensor input;
    time([&] { input = layer > 0 ? inputs[layer].detach().to(frozen_type_) : at::Tensor(); });
    time([&] { run(layer, frozen_.at(layer).parameters, input, batch); },
         {&samples[class_of(config_, model_, layer)].frozen_forward});
  }
}

void LayerBench::measure_split(int layer, at::Tensor input, const MicroBatch& batch, LayerSamples& kept) {
  at::Tensor output, gradient;
  time([&] {
    output = run(layer, layers_.at(layer).parameters, input, batch);
    gradient = at::ones_like(output);
  });
  WeightGradients later;
  time(
      [&] {
        const DeferWeightGradients deferred(later);
        torch::autograd::backward({output}, {gradient});
      },
      {&kept.input});
  kept.kept_for_weight_bytes = later.bytes();
  // As in training, the graph and the incoming gradient have been released.
  output = gradient = at::Tensor();
  time([&] { later.compute(); }, {&kept.weight});
  layers_.at(layer).gradients.zero_();
}

void LayerBench::measure_updates(Optimizer optimizer, UpdatesByKind& samples) {
  start_times();
  std::map<int, TouchedGradients> touched;
  at::Tensor divisor;
  time([&] {
    for (auto& [layer, state] : layers_) {
      // In a token table few rows have gradients; tied embeddings give all rows gradients.
      const bool is_table = layer == 0 && model_.vocab_size > 0 && model_.tied_parameter_count == 0;
      const at::Tensor rows = is_table ? at::arange(1, state.weights.options().dtype(at::kLong)) : at::Tensor();
      const TouchedGradients& gradients = touched.emplace(layer, TouchedGradients(state, rows)).first->second;
      for (const at::Tensor& tensor : gradients.tensors()) tensor.fill_(1e-3);
      gradients.write_back();
    }
    divisor = at::full({}, 2, layers_.begin()->second.weights.options());
  });
  const auto of = [&](int layer) -> UpdateSamples& { return samples[model_.layers[layer].kind]; };
  for (const auto& [layer, gradients] : touched) time([&] { gradients.square_sum(); }, {&of(layer).norm});
  for (auto& [layer, state] : layers_) {
    time([&] { update({&state}, {.optimizer = optimizer, .learning_rate = 1e-12, .gradient_divisor = divisor}); },
         {&of(layer).update});
  }
  for (const auto& [layer, gradients] : touched) time([&] { gradients.clear(); }, {&of(layer).clearing});
  finish_times();
}

}  // namespace frostpipe
