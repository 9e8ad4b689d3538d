#pragma once
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
  /// All answers that count as right; training uses the first. Empty if the context does not answer the question (SQuAD
  /// 2.0).
  std::vector<std::string> answers;
  /// Begin of the first answer, in code points of the context.
  int answer_start = 0;

  bool operator==(const Question&) const = default;
};

/// Questions about contexts, in the order of the file. Every answer is a substring of its question's context.
struct QuestionSet {
  std::vector<std::string> contexts;
  std::vector<Question> questions;

  /// Returns whether some questions have no answer.
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
/// - The id of a question is unique and not empty.
/// - A question has at least one answer, or none and "is_impossible": true. An answer is not empty and begins in the
///   context at its answer_start, counted in code points.
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
// These are the official evaluations of SQuAD 1.1 and, for a set with unanswerable questions, of SQuAD 2.0. They
// compare texts as lists of words: in lower case, without ASCII punctuation ("U.S." is "us"), without the words a, an
// and the, cut at spaces. Letters, spaces and lower case are those of Python's Unicode strings (str.lower, str.split
// and \b), except that the Unicode version is the ICU library's: ICU 72 knows the letters of Unicode 15, Python 3.11
// those of Unicode 14.

/// Returns 1 if the prediction has the words of one of the answers, else 0. If there are no answers, returns 1 for a
/// prediction without words.
double exact_match(std::string_view prediction, const std::vector<std::string>& answers);

/// Returns the harmonic mean of precision and recall of the prediction's words (repeated words count each time; order
/// does not matter), the highest over the answers; 0 if no word is shared, and so also if either text has no words. If
/// there are no answers, returns exact_match().
double f1_score(std::string_view prediction, const std::vector<std::string>& answers);

struct QuestionScores {
  /// The means over the questions, in percent.
  double exact_match = 0;
  double f1 = 0;
  /// Number of questions, with or without a prediction.
  int count = 0;

  bool operator==(const QuestionScores&) const = default;
};

/// Scores the predictions. A question without a prediction scores 0; predictions for unknown ids are ignored. In a set
/// of SQuAD 2.0, answers without words ("The") do not count; if a question has no others, a prediction without words is
/// right. All values are 0 for an empty set.
QuestionScores scores_of(const QuestionSet& set, const Predictions& predictions);

}  // namespace frostpipe
