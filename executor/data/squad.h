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
  /// All accepted answers; training uses the first.
  std::vector<std::string> answers;
  /// Begin of the first answer, in code points of the context.
  int answer_start = 0;

  bool operator==(const Question&) const = default;
};

/// Questions about contexts, in the order of the file. Every answer is a substring of its question's context.
struct QuestionSet {
  std::vector<std::string> contexts;
  std::vector<Question> questions;

  bool operator==(const QuestionSet&) const = default;
};

/// Reads question answering data in SQuAD 1.1 format:
///
///     {"data": [{"paragraphs": [{"context": "...",
///                                "qas": [{"id": "...", "question": "...",
///                                         "answers": [{"text": "...", "answer_start": 0}]}]}]}]}
///
/// - Other members are ignored. A byte order mark is skipped.
/// - Ids must be unique and not empty.
/// - A question must have an answer (so SQuAD 2.0, which has unanswerable questions, is refused). An answer must not be
///   empty and must occur in the context at its answer_start, counted in code points.
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
// The official evaluation of SQuAD 1.1. Texts are compared as lists of words: lower-cased, without ASCII punctuation
// ("U.S." is "us"), without the words a, an and the, split at spaces. Letters, spaces and case are those of Python's
// Unicode functions (str.lower, str.split and \b), but in the ICU library's version: ICU 72 knows the letters of
// Unicode 15, Python 3.11 those of Unicode 14.

/// Returns 1 if the words equal those of one of the answers, else 0.
double exact_match(std::string_view prediction, const std::vector<std::string>& answers);

/// Returns the harmonic mean of precision and recall of the prediction's words (with multiplicity; order does not
/// matter), the highest over the answers; 0 if no word is shared, also if either text has no words.
double f1_score(std::string_view prediction, const std::vector<std::string>& answers);

struct QuestionScores {
  /// Means over the questions, in per cent.
  double exact_match = 0;
  double f1 = 0;
  /// Number of questions, with or without a prediction.
  int count = 0;

  bool operator==(const QuestionScores&) const = default;
};

/// A question without a prediction scores 0; predictions for unknown ids are ignored. All values are 0 for an empty
/// set.
QuestionScores scores_of(const QuestionSet& set, const Predictions& predictions);

}  // namespace frostpipe
