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

/// How one sequence is made of a question and a context: before question between context after.
struct PairTokenizer {
  std::function<SpannedTokens(std::string_view)> encode;
  PairFrame frame{};
};

/// As the tokenizer makes one of two texts. BERT's: [CLS] question [SEP] context [SEP].
PairTokenizer pair_tokenizer(Tokenizer tokenizer);

/// A question with as much of its context as the model can see at once, as PairTokenizer has it.
struct Window {
  /// An index into QuestionSet::questions.
  int question = 0;
  std::vector<std::int32_t> ids;
  /// With what stands before and after it: the position of the first token of the context.
  int num_question_tokens = 0;
  /// Where the tokens of the context stand in it; spans[0] is that of ids[num_question_tokens].
  std::vector<TokenSpan> spans;
  /// The first and the last token of the first answer, positions in `ids`; both 0 where the window does not hold the
  /// whole answer.
  int start_position = 0;
  int end_position = 0;

  bool operator==(const Window&) const = default;
};

/// Cuts every question's context into windows of at most `max_tokens` tokens, neighbours having `stride` tokens of the
/// context in common. Windows are in the order of the questions, then of the context. Never padded.
///
/// They are those of Hugging Face transformers with truncation="only_second", max_length, stride and
/// return_overflowing_tokens=True, and their positions those of its example run_qa, with these exceptions:
///
/// - Where a window does not hold the answer, both positions are 0: [CLS], GPT-2's first token (run_qa: the first
///   <|endoftext|> where GPT-2's window has one, as padding or in the text).
/// - Questions keep the spaces they begin with (run_qa strips them, which a byte-level tokenizer sees).
/// - A question that leaves no room for stride + 1 tokens of a context that does not fit (transformers fails) is cut to
///   its first max_tokens / 2 tokens, or to fewer, so that this room is there.
/// - An answer that begins in the last token of a window starts there (run_qa: at the [SEP] after it, or at the last
///   [PAD]).
/// - An answer that is one of several pieces of one character (a Hangul syllable) never ends before it starts.
///
/// Throws InvalidInput unless stride >= 0 and max_tokens has room for stride + 1 tokens beside the special ones.
std::vector<Window> windows_of(const QuestionSet& set, const PairTokenizer& tokenizer, int max_tokens, int stride);

/// A span of tokens that may be the answer, and how likely the model finds it.
struct SpanScore {
  /// An index into the list of windows.
  int window = 0;
  /// The first and the last token, positions in Window::ids; both of the context, start <= end.
  int start = 0;
  int end = 0;
  double score = 0;

  bool operator==(const SpanScore&) const = default;
};

/// The span of the highest score. Ties: the earlier window, then the earlier start, then the earlier end; so the order
/// of the spans does not matter. A score that is no number is the lowest. There must be a span.
SpanScore best_span(std::span<const SpanScore> spans);

/// The context from the first character of one token to the last of another, as it is written there, without spaces
/// around it (tokens of a byte-level tokenizer begin with one).
std::string answer_text(const QuestionSet& set, const Window& window, int start_token, int end_token);

/// The score of a window's first token, which stands for no answer.
struct NullScore {
  int window = 0;
  double score = 0;
};

/// The text of each question's best span, `spans` holding those of all windows (any number of each). A question without
/// a span is left out. Where `nulls` has scores of its windows, the lowest of them, if it is higher than the span's,
/// makes the text empty: as transformers' run_qa decides on SQuAD 2.0, with a threshold of 0.
Predictions predictions_of(const QuestionSet& set, const std::vector<Window>& windows, std::span<const SpanScore> spans,
                           std::span<const NullScore> nulls = {});

}  // namespace frostpipe
