#include "operators/training/net_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/steady_clock.h"
#include "operators/execute_net.h"
#include "operators/nets/net_kernels.h"

namespace frostpipe {

ImageInput image_input(const NetFolder& folder, const SampleOptions& options, std::uint64_t seed) {
  return {.size = folder.net.picture_size,
          .tokens = 1,
          .normalisation = folder.normalisation,
          .augmentation = {.crop_padding = options.crop_padding, .flip = options.flip},
          .seed = seed};
}

std::vector<double> answers_of_net(const NetShape& net, const NetState& state, const Dataset& dataset,
                                   const std::vector<int>& samples, int batch_size, const Progress& progress) {
  const at::NoGradGuard no_grad;
  std::vector<double> answers;
  for (std::size_t begin = 0; begin < samples.size(); begin += batch_size) {
    const std::span<const int> asked =
        std::span(samples).subspan(begin, std::min<std::size_t>(batch_size, samples.size() - begin));
    const MicroBatch batch = dataset.samples->load({.samples = asked, .lengths = {}}, asked, at::kFloat, true);
    const auto probabilities = at::softmax(scores_of(net, state, batch.input), 1);
    const auto [most, classes] = probabilities.max(1);
    for (std::int64_t i = 0; i < most.size(0); ++i) {
      answers.push_back(static_cast<double>(classes[i].item<std::int64_t>()));
      answers.push_back(most[i].item<double>());
    }
    const std::size_t end = begin + asked.size();
    if (progress)
      progress(static_cast<double>(end) / static_cast<double>(samples.size()), fmt::format("{} samples", end));
  }
  return answers;
}

Evaluation evaluate_net(const EvaluateOptions& options, const Progress& progress) {
  if (options.device != "cpu")
    throw InvalidInput("--device", "must be cpu: nets are not computed elsewhere", options.device);
  const NetFolder folder = open_net_folder(options.model);
  require_different_labels(folder.path, folder.label_names);
  const WeightFiles weights(folder.path);
  const std::vector<std::string> missing = check_weights(folder, weights);
  if (!missing.empty())
    throw InvalidInput(options.model.string() + ": weights",
                       "must all be there, as in a folder that `nets train` wrote", "without " + missing.front());
  if (task_of(options.data) != Task::image_classification)
    throw InvalidInput(options.data.string(), "must be pictures for this model", "something else");
  const Dataset data =
      load_pictures_to_score(options.data, image_input(folder, options.samples, 0), folder.label_names);
  const NetState state = load_state(folder, weights, /*seed=*/0);
  const Nanoseconds begin_ns = steady_now_ns();
  const std::vector<int>& samples = data.split.train;
  const std::vector<double> answers = answers_of_net(folder.net, state, data, samples, options.batch_size, progress);
  const double seconds = 1e-9 * static_cast<double>(steady_now_ns() - begin_ns);
  Evaluation evaluation = evaluation_of(data, samples, answers, seconds);
  if (options.predicts) evaluation.predictions_file = predictions_file(data, answers);
  return evaluation;
}

}  // namespace frostpipe
