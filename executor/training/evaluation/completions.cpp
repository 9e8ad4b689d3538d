#include "executor/training/evaluation/completions.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

#include "base/error.h"
#include "executor/models/sliced_attention.h"

namespace frostpipe {
namespace {

/// Returns the largest number of tokens of a prompt and its completion.
std::int64_t limit_of(const TokenIds& prompt, const CompletionOptions& options) {
  return std::min(static_cast<std::int64_t>(prompt.size()) + options.max_new_tokens, options.longest);
}

/// Texts that are continued together, each from its prompt, by token slices: the first slice has as many tokens of each
/// text as the shortest prompt has, and each later slice has one token of each text. All texts are treated as equally
/// long, so that attention computes them together; tokens after a text's end are ignored.
class OpenTexts {
 public:
  OpenTexts(std::vector<std::size_t> numbers, const std::vector<TokenIds>& prompts, const CompletionOptions& options)
      : numbers_(std::move(numbers)), key_values_(std::make_unique<KeyValuesOfLayers>()), options_(options) {
    std::size_t shortest = prompts[numbers_.front()].size();
    for (const std::size_t number : numbers_) {
      const TokenIds& prompt = prompts[number];
      shortest = std::min(shortest, prompt.size());
      whole_ = std::max(whole_, limit_of(prompt, options));
      texts_.push_back({.tokens = prompt, .prompt = prompt.size(), .limit = limit_of(prompt, options)});
    }
    slice_ = {0, static_cast<std::int64_t>(shortest)};
  }

  MicroBatch slice() const {
    std::vector<std::int64_t> ids;
    for (const Text& text : texts_)
      ids.insert(ids.end(), text.tokens.begin() + slice_.begin, text.tokens.begin() + slice_.end);
    const std::vector<std::int64_t> whole(texts_.size(), whole_);
    return {.lengths = std::vector<std::int64_t>(texts_.size(), slice_.count()),
            .input = at::tensor(ids, at::kLong),
            .sliced = SlicedSamples{whole, slice_, key_values_.get()}};
  }

  /// Continues the texts. `next` has, for each text, the model's next token after the slice.
  void go_on(std::span<const double> next) {
    is_over_ = true;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      Text& text = texts_[i];
      const bool is_in_prompt = slice_.end < static_cast<std::int64_t>(text.prompt);
      if (!is_in_prompt) text.add(static_cast<std::int32_t>(next[i]), options_.end_tokens);
      is_over_ = is_over_ && text.has_ended;
    }
    slice_ = {slice_.end, slice_.end + 1};
  }

  bool is_over() const { return is_over_; }
  std::size_t size() const { return texts_.size(); }

  void give(std::vector<TokenIds>& completions) const {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const Text& text = texts_[i];
      completions[numbers_[i]] = {text.tokens.begin() + text.prompt, text.tokens.begin() + text.end};
    }
  }

 private:
  struct Text {
    TokenIds tokens;
    std::size_t prompt;    // number of the prompt's tokens
    std::int64_t limit;    // limit of the text's tokens
    std::int64_t end = 0;  // end of the completion's tokens, once it has ended
    bool has_ended = false;

    void add(std::int32_t token, const std::vector<std::int32_t>& end_tokens) {
      tokens.push_back(token);
      if (has_ended) return;
      end = static_cast<std::int64_t>(tokens.size());
      has_ended = end == limit || std::ranges::find(end_tokens, token) != end_tokens.end();
    }
  };

  std::vector<std::size_t> numbers_;
  std::unique_ptr<KeyValuesOfLayers> key_values_;
  const CompletionOptions& options_;
  std::vector<Text> texts_;
  std::int64_t whole_ = 0;
  TokenRange slice_;
  bool is_over_ = false;
};

/// Divides the prompts, by their numbers, into batches that are continued together; the shortest prompts come first.
std::vector<std::vector<std::size_t>> batches_of(const std::vector<TokenIds>& prompts,
                                                 const CompletionOptions& options) {
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t number) { return prompts[number].size(); });
  std::vector<std::vector<std::size_t>> batches;
  for (const std::size_t number : order) {
    const std::int64_t length = limit_of(prompts[number], options);  // the longest so far
    FROSTPIPE_CHECK(!prompts[number].empty() && length > static_cast<std::int64_t>(prompts[number].size()),
                    "a prompt has a token and room for another one");
    const std::size_t most = std::clamp<std::int64_t>(options.max_tokens / length, 1, options.max_samples);
    if (batches.empty() || batches.back().size() >= most) batches.emplace_back();
    batches.back().push_back(number);
  }
  return batches;
}

}  // namespace

std::vector<TokenIds> completions_of(const std::vector<TokenIds>& prompts, const CompletionOptions& options,
                                     ScheduleRunner* runner, Communicator* communicator) {
  const std::vector<std::vector<std::size_t>> batches = batches_of(prompts, options);
  std::vector<TokenIds> completions(prompts.size());
  std::vector<std::unique_ptr<OpenTexts>> open(options.batches_at_once);
  std::size_t next_batch = 0, completed = 0;
  while (completed < prompts.size()) {
    std::vector<MicroBatch> slices(open.size());
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!open[i] && next_batch < batches.size())
        open[i] = std::make_unique<OpenTexts>(batches[next_batch++], prompts, options);
      if (open[i]) slices[i] = open[i]->slice();
    }
    std::size_t num_texts = 0;
    for (const MicroBatch& slice : slices) num_texts += static_cast<std::size_t>(slice.size());
    std::vector<double> found = runner ? runner->next_tokens(slices) : std::vector<double>(num_texts, 0.0);
    if (communicator) found = communicator->sum(std::move(found));
    std::span<const double> left = found;
    for (std::unique_ptr<OpenTexts>& texts : open) {
      if (!texts) continue;
      texts->go_on(left.first(texts->size()));
      left = left.subspan(texts->size());
      if (!texts->is_over()) continue;
      texts->give(completions);
      completed += texts->size();
      texts.reset();
      options.progress(completed);
    }
  }
  return completions;
}

std::vector<TokenIds> completions_of(const std::vector<TokenIds>& prompts, CompletionOptions options,
                                     RankSession& session, Communicator& communicator) {
  const ParallelLayout& layout = session.phase().layout;
  options.batches_at_once = layout.pipeline_parallel_size * layout.data_parallel_size;
  return completions_of(prompts, options, session.runner(), &communicator);
}

}  // namespace frostpipe
