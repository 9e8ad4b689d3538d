#include "executor/data/tokenizers/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "executor/data/tokenizers/pipeline.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;

void append(Ids& ids, std::span<const std::int32_t> more) { ids.insert(ids.end(), more.begin(), more.end()); }

/// Returns the number of tokens of the text itself that fit beside `num_added` others. Throws
/// InvalidInput if max_tokens is less than that number.
std::size_t room_for_text(const EncodeOptions& options, std::size_t num_added) {
  if (options.max_tokens < 0 || static_cast<std::size_t>(options.max_tokens) < num_added)
    throw InvalidInput("maximum number of tokens",
                       fmt::format("must be >= {} (for what the tokenizer puts around a text)", num_added),
                       std::to_string(options.max_tokens));
  return static_cast<std::size_t>(options.max_tokens) - num_added;
}

void cut(Ids& ids, std::size_t size, bool from_left) {
  if (ids.size() <= size) return;
  if (from_left)
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(size));
  else
    ids.resize(size);
}

}  // namespace

Tokenizer::Tokenizer(const std::filesystem::path& model_folder)
    : pipeline_(std::make_shared<const Pipeline>(model_folder)) {}

Ids Tokenizer::encode(std::string_view utf8, const EncodeOptions& options) const {
  static const Ids kNone;
  const Ids& before = options.add_special_tokens ? pipeline_->post_processor.before : kNone;
  const Ids& after = options.add_special_tokens ? pipeline_->post_processor.after : kNone;
  const std::size_t room = room_for_text(options, before.size() + after.size());
  Ids text = pipeline_->tokens_of(utf8, Spans::kNone).ids;
  cut(text, room, pipeline_->truncates_left);
  Ids ids = before;
  ids.reserve(before.size() + text.size() + after.size());
  append(ids, text);
  append(ids, after);
  require_rows(ids);
  return ids;
}

SpannedTokens Tokenizer::encode_with_spans(std::string_view utf8, Spans spans) const {
  SpannedTokens tokens = pipeline_->tokens_of(utf8, spans);
  require_rows(tokens.ids);
  return tokens;
}

void Tokenizer::require_rows(std::span<const std::int32_t> ids) const {
  const auto beyond = std::ranges::find_if(ids, [&](std::int32_t id) { return id >= num_rows_; });
  if (beyond != ids.end())
    throw InvalidInput(
        "text", fmt::format("must have tokens of the model's {} alone", num_rows_),
        fmt::format("one with \"{}\", number {}", pipeline_->tokens[static_cast<std::size_t>(*beyond)], *beyond));
}

const PairFrame& Tokenizer::pair_frame() const { return pipeline_->post_processor.pair; }

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size())
      throw InvalidInput("token id", "must be from 0 to " + std::to_string(vocabulary_size() - 1), std::to_string(id));
    if (skip_special_tokens && pipeline_->is_special[static_cast<std::size_t>(id)]) continue;
    const auto spelling = pipeline_->normalized_spellings.find(id);
    tokens.push_back(spelling == pipeline_->normalized_spellings.end() ? pipeline_->tokens[static_cast<std::size_t>(id)]
                                                                       : spelling->second);
  }
  if (!pipeline_->decoder) return fmt::format("{}", fmt::join(tokens, " "));
  pipeline_->decoder(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

int Tokenizer::vocabulary_size() const { return static_cast<int>(pipeline_->tokens.size()); }

int Tokenizer::own_vocabulary_size() const { return static_cast<int>(pipeline_->num_own); }

const SpecialIds& Tokenizer::special_ids() const { return pipeline_->special_ids; }

}  // namespace frostpipe
