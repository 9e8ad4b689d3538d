#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/squad.h"
#include "executor/data/tokenizers/text/token_spans.h"
#include "executor/data/tokenizers/tokenizer.h"

namespace frostpipe {

/// Makes a sequence from a question and a context: before, question, between, context, after.
struct PairTokenizer {
  std::function<SpannedTokens(std::string_view)> encode;
  PairFrame frame{};
};

/// Returns the pair encoding of a tokenizer. BERT's is [CLS] question [SEP] context [SEP].
PairTokenizer pair_tokenizer(Tokenizer tokenizer);

/// A question with a part of its context that fits the model's input.
struct Window {
  /// Index into QuestionSet::questions.
  int question = 0;
  std::vector<std::int32_t> ids;
  /// Number of tokens before the context, including special tokens.
  int num_question_tokens = 0;
  /// Spans of the context's tokens in the context; spans[0] belongs to ids[num_question_tokens].
  std::vector<TokenSpan> spans;
  /// Positions in `ids` of the first and the last token of the first answer; both are 0 if the window does not contain
  /// the whole answer.
  int start_position = 0;
  int end_position = 0;

  bool operator==(const Window&) const = default;
};

/// Cuts every question's context into windows of at most `max_tokens` tokens; neighbours share `stride` tokens of the
/// context. Windows are ordered by question, then by position. They are not padded.
///
/// Windows equal those of Hugging Face transformers with truncation="only_second", max_length, stride and
/// return_overflowing_tokens=True, and positions those of its example run_qa, with these exceptions:
///
/// - If a window does not contain the answer, both positions are 0: [CLS], or GPT-2's first token (run_qa: the first
///   <|endoftext|> of GPT-2's window, if it has one as padding or in the text).
/// - Leading spaces of questions are kept (run_qa strips them, which a byte-level tokenizer notices).
/// - A question that leaves no room for stride + 1 tokens of a context that does not fit (transformers fails) is
///   truncated to its first max_tokens / 2 tokens, or to fewer, to make that room.
/// - An answer that begins in the last token of a window starts there (run_qa: at the [SEP] after it, or at the last
///   [PAD]).
/// - An answer that is one of several pieces of one character (a Hangul syllable) never ends before it starts.
///
/// Throws InvalidInput unless stride >= 0 and max_tokens has room for stride + 1 tokens beside the special ones, and as
/// Tokenizer::encode() does, with the question's id.
std::vector<Window> windows_of(const QuestionSet& set, const PairTokenizer& tokenizer, int max_tokens, int stride);

/// A span of tokens that may be the answer, with the model's score.
struct SpanScore {
  /// Index into the list of windows.
  int window = 0;
  /// Positions in Window::ids of the first and the last token, both in the context; start <= end.
  int start = 0;
  int end = 0;
  double score = 0;

  bool operator==(const SpanScore&) const = default;
};

/// Returns the span with the highest score. Ties go to the earlier window, then the earlier start, then the earlier
/// end, so the order of the spans does not matter. NaN is the lowest score. There must be at least one span.
SpanScore best_span(std::span<const SpanScore> spans);

/// Returns the context from the first character of one token to the last of another, as written, without surrounding
/// spaces (tokens of a byte-level tokenizer begin with one).
std::string answer_text(const QuestionSet& set, const Window& window, int start_token, int end_token);

/// The score of a window's first token, which stands for no answer.
struct NullScore {
  int window = 0;
  double score = 0;
};

/// Returns the text of each question's best span. `spans` has the spans of all windows, any number of each. If `nulls`
/// has scores of the question's windows, and the lowest of them is higher than the span's score, or there is no span,
/// the text is empty. transformers' run_qa decides so on SQuAD 2.0, with a threshold of 0. A question with neither
/// spans nor scores in `nulls` is left out.
Predictions predictions_of(const QuestionSet& set, const std::vector<Window>& windows, std::span<const SpanScore> spans,
                           std::span<const NullScore> nulls = {});

}  // namespace frostpipe
