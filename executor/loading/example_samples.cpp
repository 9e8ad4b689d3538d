#include "executor/loading/example_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"
#include "executor/data/chats/chat_template.h"
#include "executor/data/chats/examples.h"
#include "executor/loading/text_encoder.h"

namespace frostpipe {
namespace {

struct Sample {
  std::vector<std::int32_t> ids;
  std::vector<TokenRange> learned;
};

/// Adds `token`, which must not precede the tokens in `learned`, and joins adjacent ranges.
void learn(std::int64_t token, std::vector<TokenRange>& learned) {
  if (learned.empty() || learned.back().end != token) learned.push_back({token, token});
  learned.back().end = token + 1;
}

/// Returns the tokens with at least one byte of the ranges that have a loss. `before` is the number of tokens before
/// the text's.
std::vector<TokenRange> tokens_of(const RenderedText& rendered, const SpannedTokens& tokens, std::int64_t before) {
  const std::vector<std::size_t> starts = code_point_starts(rendered.text);
  const auto code_point = [&](std::size_t byte) {
    return static_cast<std::int32_t>(std::lower_bound(starts.begin(), starts.end(), byte) - starts.begin());
  };
  std::vector<TokenRange> learned;
  for (const TextRange& range : rendered.said) {
    const std::int32_t begin = code_point(range.begin), end = code_point(range.end);
    // Begins and ends of tokens are non-decreasing.
    auto at = std::partition_point(tokens.spans.begin(), tokens.spans.end(),
                                   [&](const TokenSpan& span) { return span.end <= begin; });
    for (; at != tokens.spans.end() && at->begin < end; ++at) {
      const std::int64_t token = before + (at - tokens.spans.begin());
      const bool is_learned = !learned.empty() && token < learned.back().end;
      if (at->begin < at->end && !is_learned) learn(token, learned);
    }
  }
  return learned;
}

class Encoder {
 public:
  Encoder(const ModelFolder& folder, const ExampleOptions& options)
      : folder_(folder), options_(options), tokens_(causal_encoder(folder)), template_(chat_template_in(folder.path)) {}

  Sample encode(const Example& example) const {
    Sample sample = std::visit([&](const auto& content) { return sample_of(content, example.place); }, example.content);
    if (options_.loss_on_all) sample.learned = {{0, static_cast<std::int64_t>(sample.ids.size())}};
    return sample;
  }

 private:
  Sample sample_of(const Conversation& chat, const std::string& place) const {
    const ChatTemplate& chat_template = require_template(template_, place, folder_.path);
    const RenderedText rendered = with_place(place, [&] { return chat_template.render(chat); });
    if (rendered.said.empty())
      throw InvalidInput(place, "the chat template must write the assistant's messages", "without any of them");
    const SpannedTokens tokens = with_place(place, [&] { return tokens_.written(rendered.text); });
    return {tokens.ids, tokens_of(rendered, tokens, 0)};
  }

  Sample sample_of(const PromptCompletion& text, const std::string& place) const {
    const RenderedText whole{.text = text.prompt + text.completion,
                             .said = {{text.prompt.size(), text.prompt.size() + text.completion.size()}}};
    const SpannedTokens tokens = with_place(place, [&] { return tokens_.written(whole.text); });
    const auto before = static_cast<std::int64_t>(tokens_.before_text.size());
    Sample sample{.ids = tokens_.before_text, .learned = tokens_of(whole, tokens, before)};
    sample.ids.insert(sample.ids.end(), tokens.ids.begin(), tokens.ids.end());
    learn(static_cast<std::int64_t>(sample.ids.size()), sample.learned);
    sample.ids.push_back(tokens_.end_of_text);
    return sample;
  }

  Sample sample_of(const Instruction& instruction, const std::string& place) const {
    return template_ ? sample_of(as_conversation(instruction), place) : sample_of(as_prompt(instruction), place);
  }

  const ModelFolder& folder_;
  const ExampleOptions& options_;
  CausalEncoder tokens_;
  std::optional<ChatTemplate> template_;
};

void cut(Sample& sample, std::int64_t max_tokens) {
  sample.ids.resize(static_cast<std::size_t>(max_tokens));
  for (TokenRange& range : sample.learned) range.end = std::min(range.end, max_tokens);
  std::erase_if(sample.learned, [](const TokenRange& range) { return range.begin >= range.end; });
}

/// Returns whether no token with a loss is predicted; the first token of a sample never is.
bool predicts_nothing(const Sample& sample) { return sample.learned.empty() || sample.learned.back().end < 2; }

}  // namespace

int add_examples(const std::filesystem::path& path, const ColumnNames& columns, const ModelFolder& folder,
                 const ExampleOptions& options, EncodedData& data, std::vector<std::string>& notes) {
  const Encoder encoder(folder, options);
  std::vector<Example> examples = read_examples(path, columns, options.answers, notes);
  const std::size_t num_unanswered = std::erase_if(examples, [](const Example& one) { return !one.has_answer; });
  if (num_unanswered > 0)
    notes.push_back(fmt::format("{}: {} of {} prompts have no answer: they are completed and not scored", path.string(),
                                num_unanswered, num_unanswered + examples.size()));
  if (examples.empty()) return 0;
  int num_cut = 0, num_added = 0;
  std::size_t num_left_out = 0;
  std::string first_left_out;
  for (const Example& example : examples) {
    Sample sample = encoder.encode(example);
    if (std::ssize(sample.ids) > options.max_tokens) {
      cut(sample, options.max_tokens);
      ++num_cut;
    }
    if (predicts_nothing(sample)) {
      if (++num_left_out == 1) first_left_out = example.place;
      continue;
    }
    data.token_ids.push_back(std::move(sample.ids));
    data.learned.push_back(std::move(sample.learned));
    ++num_added;
  }
  const std::string most = fmt::format("{} tokens (--max-tokens, or what the model takes)", options.max_tokens);
  if (num_added == 0)
    throw InvalidInput(path.string(), fmt::format("must have a sample with something to learn in its first {}", most),
                       fmt::format("{} samples without anything to learn", examples.size()));
  if (num_cut > 0)
    notes.push_back(
        fmt::format("{}: {} of {} samples are cut after {}", path.string(), num_cut, examples.size(), most));
  if (num_left_out > 0)
    notes.push_back(
        fmt::format("{}: {} of {} samples have nothing to learn in their first {} and are left out, this "
                    "being the first",
                    first_left_out, num_left_out, examples.size(), most));
  return num_added;
}

}  // namespace frostpipe
