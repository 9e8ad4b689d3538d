#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "executor/dataset.h"
#include "executor/transformer_stage.h"
#include "executor/execute.h"
#include "executor/model_folder.h"
#include "executor/stage_runner.h"
#include "profiles/error.h"

namespace frostpipe {

Evaluation evaluate(const EvaluateOptions& options, const Progress& progress) {
  ModelFolder folder = open_model_folder(options.model);
  const std::vector<std::string> label_names = folder.label_names;
  const Task task = task_of(options.data);
  if (label_names.empty() && (task == Task::sequence_classification || task == Task::image_classification)) {
    throw InvalidInput((options.model / "config.json").string() + ": id2label", "must name the labels (give a folder that train wrote)", "missing");
  }
  const std::set<std::string> different(label_names.begin(), label_names.end());
  if (different.size() < label_names.size() && task != Task::question_answering && task != Task::causal_language_modeling) {
    throw InvalidInput((options.model / "config.json").string() + ": id2label", "must name each label differently for data with labels", fmt::format("{} names for {} labels", different.size(), label_names.size()));
  }
  // All of it, as a split whose test part is nothing.
  const Dataset data = load_dataset({.data = options.data, .test_data = {}, .held_out = 0}, options.samples, folder, label_names);
  const WeightFiles weights(folder.path);
  const std::vector<std::string> missing = check_weights(folder, weights);
  if (!missing.empty()) throw InvalidInput(options.model.string() + ": weights", fmt::format("must be there to be scored (a folder that train wrote for {})", to_string(task)), missing.front() + " is missing");
  const Model model = model_of(folder.config, folder.name);
  const int num_layers = static_cast<int>(model.layers.size());

  const std::unique_ptr<ComputeDevice> device = make_device(options.device, 0);
  constexpr LayerTypes kTypes{at::kFloat, at::kFloat};
  const TransformerStageFactory factory(folder.config, model, *data.samples, kTypes, device->torch_device(), /*num_moments=*/0, /*cache=*/nullptr);
  std::map<int, LayerState> layers;
  for (int layer = 0; layer < num_layers; ++layer) {
    layers.emplace(layer, factory.make_layer(layer, /*trains=*/false));
    load_layer(folder, weights, layer, /*seed=*/0, layers.at(layer));
  }
  Phase phase;
  phase.first_trainable_layer = num_layers - 1;
  phase.partition = {{0, num_layers}};
  const std::unique_ptr<StageCompute> compute = factory.make_stage(phase, Place{}, layers);
  ActiveGroups alone;
  StageRunner runner(model, phase, 0, layers, *compute, alone, *device);

  // Samples of similar length together: less padding. Chunks of several batches, so that there is progress to show.
  std::vector<int> order(data.samples->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return data.samples->tokens(a) < data.samples->tokens(b); });
  std::vector<double> answers;
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t chunk = static_cast<std::size_t>(options.batch_size) * 8;
  for (std::size_t at = 0; at < order.size(); at += chunk) {
    const std::span<const int> samples = std::span<const int>(order).subspan(at, std::min(chunk, order.size() - at));
    const std::vector<double> found = runner.answers(*data.samples, samples, options.batch_size);
    answers.insert(answers.end(), found.begin(), found.end());
    progress(static_cast<double>(at + samples.size()) / static_cast<double>(order.size()), fmt::format("{} samples", at + samples.size()));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Score score = score_of(data, order, answers);
  Evaluation evaluation{.num_samples = static_cast<int>(order.size()),
                        .metric = score.metric,
                        .value = score.value,
                        .standard_error = score.standard_error,
                        .others = score.others,
                        .samples_per_second = static_cast<double>(order.size()) / seconds,
                        .label_names = data.label_names,
                        .labels = score.labels,
                        .predictions = score.predictions};
  if (task == Task::question_answering) evaluation.answers_json = predictions_json(predictions_of(data, order, answers));
  return evaluation;
}

}  // namespace frostpipe
