#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "executor/dataset.h"
#include "executor/encoder_stage.h"
#include "executor/execute.h"
#include "executor/model_folder.h"
#include "executor/stage_runner.h"
#include "profiles/error.h"

namespace frostpipe {

Evaluation evaluate(const EvaluateOptions& options, const Progress& progress) {
  const ModelFolder folder = open_model_folder(options.model);
  if (folder.label_names.empty()) {
    throw InvalidInput((options.model / "config.json").string() + ": id2label", "must name the labels (give a folder that train wrote)", "missing");
  }
  const TextData text = read_tsv(options.data, folder.label_names);
  const EncodedData data = encode_all(text, tokenizer_of(folder), std::min<int>(options.max_tokens, static_cast<int>(folder.config.max_position_embeddings)));
  const Model model = model_of(folder.config, folder.name);
  const int num_layers = static_cast<int>(model.layers.size());

  const std::unique_ptr<ComputeDevice> device = make_device(options.device, 0);
  const at::TensorOptions tensor_options = at::TensorOptions().dtype(at::kFloat).device(device->torch_device());
  const SafetensorsFile weights(folder.path / "model.safetensors");
  std::map<int, LayerState> layers;
  for (int layer = 0; layer < num_layers; ++layer) {
    layers.emplace(layer, make_layer_state(parameters_of(folder.config, layer), tensor_options, /*trains=*/false, /*num_moments=*/0));
    load_layer(folder, weights, layer, /*seed=*/0, layers.at(layer));
  }
  Phase phase;
  phase.first_trainable_layer = num_layers - 1;
  phase.partition = {{0, num_layers}};
  const EncoderStageFactory factory(folder.config, model, data, tensor_options, /*num_moments=*/0, /*cache=*/nullptr);
  const std::unique_ptr<StageCompute> compute = factory.make_stage(phase, Place{}, layers);
  ActiveGroups alone;
  StageRunner runner(model, phase, 0, layers, *compute, alone, *device);

  // Texts of similar length together: less padding. Chunks of several batches, so that there is progress to show.
  std::vector<int> order(data.labels.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return data.token_ids[a].size() < data.token_ids[b].size(); });
  Evaluation evaluation{.num_samples = static_cast<int>(order.size()), .label_names = folder.label_names, .labels = data.labels, .predictions = std::vector<int>(order.size())};
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t chunk = static_cast<std::size_t>(options.batch_size) * 8;
  for (std::size_t at = 0; at < order.size(); at += chunk) {
    const std::span<const int> samples = std::span<const int>(order).subspan(at, std::min(chunk, order.size() - at));
    const std::vector<int> found = runner.predict(data, samples, options.batch_size);
    for (std::size_t i = 0; i < samples.size(); ++i) evaluation.predictions[samples[i]] = found[i];
    progress(static_cast<double>(at + samples.size()) / static_cast<double>(order.size()), std::to_string(at + samples.size()) + " texts");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  int correct = 0;
  for (std::size_t i = 0; i < order.size(); ++i) correct += evaluation.predictions[i] == evaluation.labels[i];
  const auto count = static_cast<double>(order.size());
  evaluation.accuracy = correct / count;
  evaluation.standard_error = std::sqrt(evaluation.accuracy * (1 - evaluation.accuracy) / count);
  evaluation.samples_per_second = count / seconds;
  return evaluation;
}

}  // namespace frostpipe
