#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/wordpiece.h"

namespace frostpipe {

// ---- Questions ----------------------------------------------------------------------------------

struct Question {
  std::string id;
  std::string question;
  /// An index into QuestionSet::contexts.
  int context = 0;
  /// Every text that counts as right; training uses the first.
  std::vector<std::string> answers;
  /// Where the first answer begins: code points of the context.
  int answer_start = 0;

  bool operator==(const Question&) const = default;
};

/// Questions about texts, in the order of their file. Every answer is a piece of its question's context.
struct QuestionSet {
  std::vector<std::string> contexts;
  std::vector<Question> questions;

  bool operator==(const QuestionSet&) const = default;
};

/// Reads question answering data in the form of SQuAD 1.1:
///
///     {"data": [{"paragraphs": [{"context": "...",
///                                "qas": [{"id": "...", "question": "...",
///                                         "answers": [{"text": "...", "answer_start": 0}]}]}]}]}
///
/// - Other members are ignored. A byte order mark is skipped.
/// - An id stands for one question alone, and is not empty.
/// - A question has an answer (so SQuAD 2.0, which has questions without, is refused), an answer is not empty, and it
///   stands in the context at its answer_start, counted in code points.
///
/// Throws InvalidInput that names file, place (data[3].paragraphs[2].qas[0].answers[0].answer_start), rule and value;
/// also for a file without a question.
QuestionSet read_squad(const std::filesystem::path& path);

// ---- Windows ------------------------------------------------------------------------------------

/// A question with as much of its context as the model can see at once: [CLS] question [SEP] part of the context [SEP].
struct Window {
  /// An index into QuestionSet::questions.
  int question = 0;
  std::vector<std::int32_t> ids;
  /// With [CLS] and the first [SEP]: the position of the first token of the context.
  int num_question_tokens = 0;
  /// Where the tokens of the context stand in it; spans[0] is that of ids[num_question_tokens].
  std::vector<TokenSpan> spans;
  /// The first and the last token of the first answer, positions in `ids`; both 0, that of [CLS], where the window does
  /// not hold the whole answer.
  int start_position = 0;
  int end_position = 0;

  bool operator==(const Window&) const = default;
};

/// Cuts every question's context into windows of at most `max_tokens` tokens, neighbours having `stride` tokens of the
/// context in common. Windows are in the order of the questions, then of the context. Never padded.
///
/// They are those of Hugging Face transformers with truncation="only_second", max_length, stride and
/// return_overflowing_tokens=True, and their positions those of its example run_qa, with three exceptions:
///
/// - A question that leaves no room for stride + 1 tokens of a context that does not fit (transformers fails) is cut to
///   its first max_tokens / 2 tokens, or to fewer, so that this room is there.
/// - An answer that begins in the last token of a window starts there (run_qa: at the [SEP] behind it, or at the last
///   [PAD]).
/// - An answer that is one of several pieces of one character (a Hangul syllable) never ends before it starts.
///
/// Throws InvalidInput unless stride >= 0 and max_tokens >= stride + 4.
std::vector<Window> windows_of(const QuestionSet& set, const WordPiece& tokenizer, int max_tokens, int stride);

/// BERT's token types: 0 for each token of [CLS] question [SEP], 1 for the rest.
std::vector<std::int32_t> token_types_of(const Window& window);

// ---- Answers ------------------------------------------------------------------------------------

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

/// The context from the first character of one token to the last of another, as it is written there.
std::string answer_text(const QuestionSet& set, const Window& window, int start_token, int end_token);

/// Answers by the id of their question.
using Predictions = std::map<std::string, std::string>;

/// The text of each question's best span, `spans` holding those of all windows (any number of each). A question without
/// a span is left out.
Predictions predictions_of(const QuestionSet& set, const std::vector<Window>& windows,
                           std::span<const SpanScore> spans);

/// {"id": "text", ...} as the official evaluation script reads it; ids ascend. Broken UTF-8 is written as U+FFFD.
std::string predictions_json(const Predictions& predictions);

// ---- Scores -------------------------------------------------------------------------------------
// The official evaluation of SQuAD 1.1. Texts are compared as lists of words: in lower case, without ASCII punctuation
// ("U.S." is "us"), without the words a, an and the, cut at spaces. What is a letter, a space or lower case is what
// Python says of Unicode text (str.lower, str.split and \b), but of the age of the ICU library: ICU 72 knows the
// letters of Unicode 15, Python 3.11 those of Unicode 14.

/// 1 where the words are those of one of the answers, else 0.
double exact_match(std::string_view prediction, const std::vector<std::string>& answers);

/// The harmonic mean of precision and recall of the prediction's words (as often as they stand there; order does not
/// matter), the highest over the answers; 0 where no word is shared, so also where either text has no words.
double f1_score(std::string_view prediction, const std::vector<std::string>& answers);

struct QuestionScores {
  /// Means over the questions, in per cent.
  double exact_match = 0;
  double f1 = 0;
  /// Number of questions, with a prediction or without.
  int count = 0;

  bool operator==(const QuestionScores&) const = default;
};

/// A question without a prediction counts 0; predictions for other ids are ignored. All 0 for a set without questions.
QuestionScores scores_of(const QuestionSet& set, const Predictions& predictions);

}  // namespace frostpipe
