#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "executor/data/table.h"
#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "executor/models/folder/model_folder.h"
#include "executor/runtime/stage_runner.h"
#include "executor/runtime/transformer_stage.h"
#include "executor/training/score.h"
#include "profiles/error.h"

namespace frostpipe {

namespace {

/// What is said of each item of the data, as CSV: text or picture, label where there is one, predicted label, its
/// probability.
std::string predictions_csv(const Dataset& data, const Score& score) {
  const bool has_labels = !score.labels.empty();
  std::vector<std::string> header{data.task == Task::image_classification ? "picture" : "text", "predicted",
                                  "probability"};
  if (has_labels) header.insert(header.begin() + 1, "label");
  std::string csv = csv_line(header);
  for (std::size_t i = 0; i < data.items.size(); ++i) {
    std::vector<std::string> fields{data.items[i], data.label_names[score.predictions[i]],
                                    fmt::format("{:.6f}", score.probabilities[i])};
    if (has_labels) fields.insert(fields.begin() + 1, data.label_names[score.labels[i]]);
    csv += csv_line(fields);
  }
  return csv;
}

}  // namespace

Evaluation evaluate(const EvaluateOptions& options, const Progress& progress) {
  ModelFolder folder = open_model_folder(options.model);
  const Dataset data = load_to_score(options.data, options.samples, folder);
  const Task task = data.task;
  if (options.predicts && task == Task::causal_language_modeling)
    throw InvalidInput("--predictions", "needs data with answers: texts or pictures to label, or questions",
                       "for plain text");
  const WeightFiles weights(folder.path);
  const std::vector<std::string> missing = check_weights(folder, weights);
  if (!missing.empty())
    throw InvalidInput(options.model.string() + ": weights",
                       fmt::format("must be there to be scored (a folder that train wrote for {})", to_string(task)),
                       missing.front() + " is missing");
  const Model model = model_of(folder.config, folder.name);
  const int num_layers = static_cast<int>(model.layers.size());

  const std::unique_ptr<ComputeDevice> device = make_device(options.device, 0);
  constexpr LayerTypes kTypes{at::kFloat, at::kFloat};
  const TransformerStageFactory factory(folder.config, model, *data.samples, kTypes, device->torch_device(),
                                        /*num_moments=*/0, /*cache=*/nullptr);
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

  // Shortest first: attention takes those of one length together. Chunks of several batches, so that there is progress
  // to show.
  std::vector<int> order(data.samples->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return data.samples->tokens(a) < data.samples->tokens(b); });
  const auto width = static_cast<std::size_t>(compute->answer_size());
  std::vector<double> answers(order.size() * width);  // in the data's order
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t chunk = static_cast<std::size_t>(options.batch_size) * 8;
  for (std::size_t at = 0; at < order.size(); at += chunk) {
    const std::span<const int> samples = std::span<const int>(order).subspan(at, std::min(chunk, order.size() - at));
    const std::vector<double> found = runner.answers(*data.samples, samples, options.batch_size);
    for (std::size_t i = 0; i < samples.size(); ++i)
      std::copy_n(found.begin() + i * width, width, answers.begin() + samples[i] * width);
    progress(static_cast<double>(at + samples.size()) / static_cast<double>(order.size()),
             fmt::format("{} samples", at + samples.size()));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::sort(order.begin(), order.end());
  const Score score = score_of(data, order, answers);
  Evaluation evaluation{.num_samples = static_cast<int>(order.size()),
                        .metric = score.metric,
                        .value = score.value,
                        .standard_error = score.standard_error,
                        .others = score.others,
                        .samples_per_second = static_cast<double>(order.size()) / seconds,
                        .label_names = data.label_names,
                        .labels = score.labels,
                        .predictions = score.predictions,
                        .notes = data.notes};
  if (options.predicts)
    evaluation.predictions_file = task == Task::question_answering
                                      ? predictions_json(predictions_of(data, order, answers))
                                      : predictions_csv(data, score);
  return evaluation;
}

}  // namespace frostpipe
