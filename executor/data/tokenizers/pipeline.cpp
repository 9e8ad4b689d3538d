#include "executor/data/tokenizers/pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "executor/data/tokenizers/text/characters.h"

namespace frostpipe {

/// The state of encoding one text.
class Tokenizer::Pipeline::Run {
 public:
  Run(const Pipeline& pipeline, Spans spans) : pipeline_(pipeline), spans_(spans) {}

  SpannedTokens tokens_of(std::string_view utf8) {
    for (const TextPiece& piece : pipeline_.as_written.split(utf8)) {
      const std::string_view part = utf8.substr(piece.range.begin, piece.range.end - piece.range.begin);
      if (piece.id) {
        const std::int32_t begin = character_;
        if (with_spans()) character_ += static_cast<std::int32_t>(code_point_starts(part).size()) - 1;
        add(*piece.id, trimmed(part, {begin, character_}, /*is_bytes=*/false));
      } else {
        add_text(text_of(part, piece.range.begin == 0));
      }
    }
    return std::move(result_);
  }

 private:
  bool with_spans() const { return spans_ != Spans::kNone; }

  Text text_of(std::string_view utf8, bool is_first) {
    Text text{.bytes = std::string(utf8), .positions = {}, .has_positions = with_spans(), .is_first = is_first};
    if (!utf8.empty()) next_character(utf8, text.bytes_of_first);
    if (!with_spans()) return text;
    text.positions.reserve(utf8.size());
    for (std::size_t i = 0; i < utf8.size(); ++character_) {
      next_character(utf8, i);
      text.positions.resize(i, character_);
    }
    return text;
  }

  /// Adds the tokens of a text between the added tokens that are matched as written.
  void add_text(Text text) {
    if (pipeline_.normalizer) pipeline_.normalizer(text);
    const std::vector<TextPiece> pieces = pipeline_.normalized.split(text.bytes);
    if (pieces.size() == 1 && !pieces[0].id) return add_words(std::move(text));
    for (const TextPiece& piece : pieces) {
      const std::string_view text_of_piece =
          std::string_view(text.bytes).substr(piece.range.begin, piece.range.end - piece.range.begin);
      if (piece.id) {
        add(*piece.id,
            with_spans() ? trimmed(text_of_piece, span_of(text, piece.range), /*is_bytes=*/false) : TokenSpan{});
        continue;
      }
      Rewrite part(text);
      part.keep(piece.range);
      Text rest = part.take();
      rest.is_first = text.is_first && piece.range.begin == 0;
      add_words(std::move(rest));
    }
  }

  void add_words(Text text) {
    const std::size_t size = text.bytes.size();
    Pieces pieces{.text = std::move(text), .ranges = {{0, size}}};
    pipeline_.pre_tokenizer.cut(pieces);
    tokens_.clear();
    pipeline_.model->tokenize(pieces, tokens_);
    result_.ids.reserve(result_.ids.size() + tokens_.size());
    for (const TextToken& token : tokens_) {
      if (!with_spans())
        result_.ids.push_back(token.id);
      else
        add_trimmed(pieces, token);
    }
  }

  void add_trimmed(const Pieces& pieces, const TextToken& token) {
    const Range range{token.begin, token.end};
    add(token.id, trimmed(pieces[range], span_of(pieces.text, range), pipeline_.pre_tokenizer.is_byte_level));
  }

  void add(std::int32_t id, TokenSpan span) {
    result_.ids.push_back(id);
    if (with_spans()) result_.spans.push_back(span);
  }

  static TokenSpan span_of(const Text& text, Range range) {
    return {.begin = text.positions[range.begin], .end = text.positions[range.end - 1] + 1};
  }

  /// Returns the span of a token whose characters are at `span`. If trimmed spans are wanted and the post-processor
  /// trims them, the spaces at the token's ends are excluded, except a single one at the beginning of the text if the
  /// tokenizer may have added it. If `is_bytes`, the token may begin and end inside a character.
  TokenSpan trimmed(std::string_view token, TokenSpan span, bool is_bytes) const {
    if (spans_ != Spans::kTrimmed || !pipeline_.post_processor.trims_spans) return span;
    std::int32_t leading = 0, trailing = 0;
    bool only_spaces = true;
    for (std::size_t i = 0; i < token.size();) {
      const bool is_space = is_bytes ? token[i++] == ' ' : is_whitespace(next_character(token, i));
      only_spaces = only_spaces && is_space;
      if (only_spaces) ++leading;
      trailing = is_space ? trailing + 1 : 0;
    }
    if (leading == 1 && pipeline_.post_processor.adds_space && (result_.ids.empty() || span.begin == 0)) leading = 0;
    span.begin = std::min(span.begin + leading, span.end);
    if (span.end >= trailing) span.end = std::max(span.end - trailing, span.begin);
    return span;
  }

  const Pipeline& pipeline_;
  Spans spans_;
  std::int32_t character_ = 0;  // code points of the original text so far; counted only for spans
  std::vector<TextToken> tokens_;
  SpannedTokens result_;
};

SpannedTokens Tokenizer::Pipeline::tokens_of(std::string_view utf8, Spans spans) const {
  if (utf8.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput("text to encode", "must be shorter than 2^31 bytes", std::to_string(utf8.size()));
  std::string buffer;
  return Run(*this, spans).tokens_of(valid_utf8(utf8, buffer));
}

}  // namespace frostpipe
