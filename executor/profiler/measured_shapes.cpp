#include "executor/profiler/measured_shapes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "executor/loading/dataset.h"
#include "profiles/slice_lengths.h"

namespace frostpipe {
namespace {

/// Returns the micro-batch sizes to measure: powers of 2 up to the global batch size (powers of 8 with `quick`), and
/// that size. Others are interpolated.
std::vector<int> suited_sizes(int global_batch_size, bool quick) {
  std::vector<int> sizes;
  for (int size = 1; size < global_batch_size; size *= quick ? 8 : 2) sizes.push_back(size);
  sizes.push_back(global_batch_size);
  return sizes;
}

/// Returns the tokens of the training samples, ascending.
std::vector<int> lengths_of(const Dataset& dataset) {
  std::vector<int> lengths;
  for (const int sample : dataset.split.train) lengths.push_back(dataset.samples->tokens(sample));
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

/// Describes the data. `lengths` are the tokens of the training samples, ascending.
Workload describe_data(const Dataset& dataset, const std::vector<int>& lengths, const MeasureOptions& options) {
  int longest = lengths.back();
  if (options.test_data.empty())
    longest = std::max(longest, longest_tokens(*dataset.samples, dataset.split.test));  // another seed trains on these
  const auto count = static_cast<double>(lengths.size());
  const double mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / count;
  double squares = 0;
  for (const int length : lengths) squares += (length - mean) * (length - mean);
  Workload workload{.name = options.data->filename().string(),
                    .num_samples = static_cast<int>(lengths.size()),
                    .tokens = mean,
                    .tokens_deviation = std::sqrt(squares / count),
                    .longest_tokens = longest,
                    .global_batch_size = options.global_batch_size};
  if (dataset.task != Task::image_classification)
    workload.max_tokens = options.samples.max_tokens > 0 ? options.samples.max_tokens : dataset.usual_max_tokens;
  if (dataset.task == Task::question_answering) workload.window_overlap = options.samples.window_overlap;
  return workload;
}

/// Returns the tokens per sample to measure at: the data's mean, which predictions of times use, and a larger length,
/// at least half of the longest sample, from which predictions of memory extrapolate. The model supports at most
/// `max_tokens`.
std::vector<int> suited_tokens(const Workload& workload, int max_tokens) {
  const int mean = static_cast<int>(std::lround(workload.tokens)), longest = workload.longest_tokens;
  if (mean == longest) return {mean};  // pictures, or blocks of text
  const int larger = std::min(max_tokens, std::max(mean + std::max(4, mean / 2), (longest + 1) / 2));
  return larger > mean ? std::vector<int>{mean, larger} : std::vector<int>{std::max(1, mean / 2), mean};
}

}  // namespace

std::vector<Shape> Shapes::all() const {
  std::set<int> wholes(tokens.begin(), tokens.end());
  wholes.insert(slices.begin(), slices.end());
  std::vector<Shape> all;
  for (const int length : wholes)
    for (const int size : sizes) all.push_back({size, length});
  const int half = *std::max_element(tokens.begin(), tokens.end()) / 2;
  for (const int length : slices)
    for (const int size : sizes) all.push_back({size, length, half});
  return all;
}

Shapes shapes_to_measure(const MeasureOptions& options, ModelFolder& folder) {
  Shapes shapes;
  const bool is_of_pictures = folder.config.reads_pictures;
  const int max_tokens =
      static_cast<int>(is_of_pictures ? image_tokens(folder.config) : folder.config.max_position_embeddings);
  shapes.tokens = options.tokens.empty() ? std::vector<int>{16, 32} : options.tokens;
  if (options.tokens.empty() && max_tokens < shapes.tokens.back())
    shapes.tokens = {std::max(1, max_tokens / 2), max_tokens};
  if (options.data) {
    const Dataset dataset =
        load_dataset({*options.data, options.test_data, options.held_out, options.seed}, options.samples, folder);
    shapes.data_lengths = lengths_of(dataset);
    if (dataset.task == Task::causal_language_modeling)
      shapes.learned_part = learned_part(*dataset.samples, dataset.split.train);
    shapes.has_one_length = has_one_length(*dataset.samples);
    shapes.workload = describe_data(dataset, shapes.data_lengths, options);
    if (options.tokens.empty()) shapes.tokens = suited_tokens(*shapes.workload, max_tokens);
  }
  if (is_of_pictures) {
    shapes.tokens = {max_tokens};
    shapes.has_one_length = true;
  }
  shapes.sizes = options.micro_batch_sizes.empty() ? suited_sizes(options.global_batch_size, options.quick)
                                                   : options.micro_batch_sizes;
  if (model_of(folder.config, folder.name).is_causal && !options.quick)
    shapes.slices = slice_lengths(*std::max_element(shapes.tokens.begin(), shapes.tokens.end()));
  return shapes;
}

}  // namespace frostpipe
