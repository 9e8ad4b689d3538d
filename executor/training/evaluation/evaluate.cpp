#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"
#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "executor/loading/labelled_texts.h"
#include "executor/loading/prompts.h"
#include "executor/loading/text_encoder.h"
#include "executor/models/folder/generation_config.h"
#include "executor/models/folder/model_folder.h"
#include "executor/training/evaluation/completions.h"
#include "executor/training/evaluation/score.h"
#include "executor/training/evaluation/whole_model.h"

namespace frostpipe {

namespace {

/// Returns the folder's weights. Throws InvalidInput if some are missing.
WeightFiles whole_weights(const ModelFolder& folder, const EvaluateOptions& options, Task task) {
  WeightFiles weights(folder.path);
  const std::vector<std::string> missing = check_weights(folder, weights);
  if (!missing.empty())
    throw InvalidInput(options.model.string() + ": weights",
                       fmt::format("must be complete (give a folder that train wrote for {})", to_string(task)),
                       missing.front() == "the whole model" ? "missing" : "without " + missing.front());
  return weights;
}

/// Returns the answers to all samples, in order. Computes the shortest first, since attention batches samples of one
/// length, and in chunks of several batches, to report progress.
std::vector<double> answers_to(const Samples& samples, WholeModel& model, int batch_size, const Progress& progress) {
  std::vector<int> order(samples.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return samples.tokens(a) < samples.tokens(b); });
  std::vector<int> all(order.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::size_t> begins = answer_begins(samples, all, model.answer_shape());
  std::vector<double> answers(begins.back());
  const std::size_t chunk = static_cast<std::size_t>(batch_size) * 8;
  for (std::size_t at = 0; at < order.size(); at += chunk) {
    const std::span<const int> asked = std::span<const int>(order).subspan(at, std::min(chunk, order.size() - at));
    const std::vector<double> found = model.runner().answers(samples, asked, batch_size);
    auto next = found.begin();
    for (const int sample : asked) {
      const std::size_t size = begins[sample + 1] - begins[sample];
      std::copy_n(next, size, answers.begin() + static_cast<std::ptrdiff_t>(begins[sample]));
      next += static_cast<std::ptrdiff_t>(size);
    }
    progress(static_cast<double>(at + asked.size()) / static_cast<double>(order.size()),
             fmt::format("{} samples", at + asked.size()));
  }
  return answers;
}

/// Reads prompts for a causal model. Throws InvalidInput for plain text, and for a prompt that leaves no room for a
/// completion.
std::vector<Prompt> prompts_in(const EvaluateOptions& options, const ModelFolder& folder,
                               std::vector<std::string>& notes) {
  if (options.data.extension() == ".txt")
    throw InvalidInput("--predictions",
                       "needs data with answers (texts or pictures to label, or questions) or with prompts (JSON Lines "
                       "with \"prompt\", \"instruction\" or \"messages\")",
                       "for plain text");
  std::vector<Prompt> prompts =
      read_prompts(options.data, {options.samples.text_column, options.samples.label_column}, folder, notes);
  for (const Prompt& prompt : prompts)
    if (std::ssize(prompt.ids) >= folder.config.max_position_embeddings)
      throw InvalidInput(prompt.place,
                         fmt::format("must leave room for a completion in the model's {} positions",
                                     folder.config.max_position_embeddings),
                         fmt::format("a prompt of {} tokens", prompt.ids.size()));
  return prompts;
}

/// Returns the model's completions of the prompts as JSON Lines. Keys and values are kept for at most as many tokens as
/// a batch of options.batch_size of the longest samples has.
std::string completed(const std::vector<Prompt>& prompts, const ModelFolder& folder, const EvaluateOptions& options,
                      WholeModel& model, const Progress& progress) {
  const CausalEncoder tokens = causal_encoder(folder);
  CompletionOptions how{.end_tokens = end_tokens_in(folder.path),
                        .max_new_tokens = options.max_new_tokens,
                        .longest = folder.config.max_position_embeddings,
                        .max_samples = options.batch_size,
                        .max_tokens = std::int64_t{options.batch_size} * longest(options.samples, folder)};
  how.end_tokens.push_back(tokens.end_of_text);
  how.progress = [&](std::size_t completed) {
    progress(static_cast<double>(completed) / static_cast<double>(prompts.size()),
             fmt::format("{} completions", completed));
  };
  std::vector<TokenIds> ids;
  for (const Prompt& prompt : prompts) ids.push_back(prompt.ids);
  const std::vector<TokenIds> completions = completions_of(ids, how, &model.runner(), /*communicator=*/nullptr);
  std::string lines;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    lines += completion_line({prompts[i].text, tokens.text_of(completions[i]), prompts[i].expected});
  return lines;
}

}  // namespace

Evaluation evaluate(const EvaluateOptions& options, const Progress& progress) {
  ModelFolder folder = open_model_folder(options.model);
  Dataset data =
      load_to_score(options.data, options.samples, folder, options.predicts ? Answers::optional : Answers::required);
  const bool completes = options.predicts && data.task == Task::causal_language_modeling;
  const std::vector<Prompt> prompts = completes ? prompts_in(options, folder, data.notes) : std::vector<Prompt>{};
  const WeightFiles weights = whole_weights(folder, options, data.task);
  WholeModel model(folder, weights, *data.samples, options.device);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<double> answers = answers_to(*data.samples, model, options.batch_size, progress);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<int> all(data.samples->size());
  std::iota(all.begin(), all.end(), 0);
  Evaluation evaluation = evaluation_of(data, all, answers, seconds);
  evaluation.num_completions = static_cast<int>(prompts.size());
  if (completes)
    evaluation.predictions_file = completed(prompts, folder, options, model, progress);
  else if (options.predicts)
    evaluation.predictions_file = predictions_file(data, answers);
  return evaluation;
}

}  // namespace frostpipe
