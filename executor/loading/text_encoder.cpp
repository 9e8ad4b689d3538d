#include "executor/loading/text_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace frostpipe {

Tokenizer tokenizer_of(const ModelFolder& folder) {
  Tokenizer tokenizer(folder.path);
  const int ids = std::max(tokenizer.own_vocabulary_size(), tokenizer.special_ids().end_of_text.value_or(-1) + 1);
  if (ids > folder.config.vocab_size)
    throw InvalidInput((folder.path / "config.json").string() + ": vocab_size",
                       fmt::format("must be at least the tokenizer's {}", ids),
                       std::to_string(folder.config.vocab_size));
  tokenizer.require_ids_below(static_cast<int>(folder.config.vocab_size));
  return tokenizer;
}

std::function<std::vector<std::int32_t>(std::string_view)> text_encoder(const ModelFolder& folder, int max_tokens) {
  return [tokenizer = tokenizer_of(folder), max_tokens](std::string_view text) {
    std::vector<std::int32_t> ids = tokenizer.encode(text, {.max_tokens = max_tokens});
    if (!ids.empty()) return ids;
    if (!tokenizer.special_ids().end_of_text)
      throw InvalidInput("text", "must have a token, as the tokenizer has none for the end of a text", "empty");
    return std::vector{*tokenizer.special_ids().end_of_text};
  };
}

void drop_padding(const TransformerConfig& config, std::vector<std::int32_t>& ids) {
  if (!config.reads_last_token()) return;
  while (ids.size() > 1 && ids.back() == config.padding_id) ids.pop_back();
}

namespace {

struct Frame {
  std::vector<std::int32_t> before, after;
};

/// Returns the tokens that the tokenizer puts around a text.
Frame frame_of(const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> framed = tokenizer.encode("a"),
                                  plain = tokenizer.encode("a", {.add_special_tokens = false});
  const auto text = std::ranges::search(framed, plain);
  return {{framed.begin(), text.begin()}, {text.end(), framed.end()}};
}

}  // namespace

WordEncoder word_encoder(const ModelFolder& folder) {
  const Tokenizer tokenizer = tokenizer_of(folder);
  Frame frame = frame_of(tokenizer);
  const std::vector<std::int32_t> first = tokenizer.encode("a", {.add_special_tokens = false});
  const auto tokens_of = [tokenizer, first](std::string_view word) {
    const std::vector<std::int32_t> both = tokenizer.encode("a " + std::string(word), {.add_special_tokens = false});
    return both.size() >= first.size() && std::equal(first.begin(), first.end(), both.begin())
               ? std::vector<std::int32_t>(both.begin() + static_cast<std::ptrdiff_t>(first.size()), both.end())
               : tokenizer.encode(word, {.add_special_tokens = false});
  };
  return {std::move(frame.before), std::move(frame.after), tokens_of};
}

CausalEncoder causal_encoder(const ModelFolder& folder) {
  const Tokenizer tokenizer = tokenizer_of(folder);
  if (!tokenizer.special_ids().end_of_text)
    throw InvalidInput((folder.path / "tokenizer_config.json").string() + ": eos_token",
                       "must name the token that ends a text and a completion", "missing");
  return {.written = [tokenizer](std::string_view text) { return tokenizer.encode_with_spans(text, Spans::kWhole); },
          .before_text = frame_of(tokenizer).before,
          .end_of_text = *tokenizer.special_ids().end_of_text,
          .text_of =
              [tokenizer](std::span<const std::int32_t> ids) {
                return tokenizer.decode(ids, /*skip_special_tokens=*/true);
              }};
}

}  // namespace frostpipe
