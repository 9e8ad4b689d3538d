#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

// ---- Questions ----------------------------------------------------------------------------------

struct Question {
  std::string id;
  std::string question;
  /// Index into QuestionSet::contexts.
  int context = 0;
  /// Every text that counts as right; training uses the first. None: the context does not answer it (SQuAD 2.0).
  std::vector<std::string> answers;
  /// Begin of the first answer, in code points of the context.
  int answer_start = 0;

  bool operator==(const Question&) const = default;
};

/// Questions about contexts, in the order of the file. Every answer is a substring of its question's context.
struct QuestionSet {
  std::vector<std::string> contexts;
  std::vector<Question> questions;

  /// Some have no answer.
  bool has_unanswerable() const;

  bool operator==(const QuestionSet&) const = default;
};

/// Reads question answering data in the form of SQuAD 1.1, or of SQuAD 2.0, which has questions without an answer:
///
///     {"data": [{"paragraphs": [{"context": "...",
///                                "qas": [{"id": "...", "question": "...",
///                                         "answers": [{"text": "...", "answer_start": 0}]}]}]}]}
///
/// - Other members are ignored. A byte order mark is skipped.
/// - An id stands for one question alone, and is not empty.
/// - A question has an answer, or "is_impossible" true and none. An answer is not empty, and it stands in the context
/// at
///   its answer_start, counted in code points.
///
/// Throws InvalidInput that names file, place (data[3].paragraphs[2].qas[0].answers[0].answer_start), rule and value,
/// also for a file without questions.
QuestionSet read_squad(const std::filesystem::path& path);

// ---- Answers ------------------------------------------------------------------------------------

/// Answers by the id of their question.
using Predictions = std::map<std::string, std::string>;

/// Returns {"id": "text", ...} as the official evaluation script reads it; ids ascend. Invalid UTF-8 becomes U+FFFD.
std::string predictions_json(const Predictions& predictions);

// ---- Scores -------------------------------------------------------------------------------------
// The official evaluations of SQuAD 1.1 and, for a set with unanswerable questions, 2.0. Texts are compared as lists of
// words: in lower case, without ASCII punctuation ("U.S." is "us"), without the words a, an and the, cut at spaces.
// What is a letter, a space or lower case is what Python says of Unicode text (str.lower, str.split and \b), but of the
// age of the ICU library: ICU 72 knows the letters of Unicode 15, Python 3.11 those of Unicode 14.

/// 1 where the words are those of one of the answers, else 0. Without answers 1 for a text without words.
double exact_match(std::string_view prediction, const std::vector<std::string>& answers);

/// The harmonic mean of precision and recall of the prediction's words (as often as they stand there; order does not
/// matter), the highest over the answers; 0 where no word is shared, so also where either text has no words. Without
/// answers as exact_match().
double f1_score(std::string_view prediction, const std::vector<std::string>& answers);

struct QuestionScores {
  /// Means over the questions, in per cent.
  double exact_match = 0;
  double f1 = 0;
  /// Number of questions, with or without a prediction.
  int count = 0;

  bool operator==(const QuestionScores&) const = default;
};

/// A question without a prediction scores 0; predictions for unknown ids are ignored. In a set of SQuAD 2.0, answers
/// without words ("The") do not count, so a question with no others is right without a word. All values are 0 for an
/// empty set.
QuestionScores scores_of(const QuestionSet& set, const Predictions& predictions);

}  // namespace frostpipe
