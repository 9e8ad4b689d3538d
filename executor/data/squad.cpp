#include "executor/data/squad.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/parse_json.h"
#include "executor/data/text_file.h"
#include "executor/data/tokenizers/text/token_spans.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using json::Place;

// ---- Reading ------------------------------------------------------------------------------------

/// Throws InvalidInput. The message shows a scalar, and of a list or an object only the kind.
[[noreturn]] void refuse(const Place& place, std::string_view rule, const Json& value) {
  if (value.is_structured()) throw InvalidInput(place.text(), rule, value.is_array() ? "a list" : "an object");
  json::fail(place, rule, json::Json(value));
}

const Json& member(const Json& object, const Place& place, std::string_view name) {
  if (!object.is_object()) refuse(place, "must be an object", object);
  const auto found = object.find(name);
  if (found == object.end())
    throw InvalidInput(place.text(), fmt::format("must have the member \"{}\"", name), "without it");
  return *found;
}

/// Calls read(element, its place) for each element of the list `name`.
void for_each_element(const Json& object, const Place& place, std::string_view name, auto read) {
  const Json& list = member(object, place, name);
  const Place list_place(place, name);
  if (!list.is_array()) refuse(list_place, "must be a list", list);
  for (std::size_t i = 0; i < list.size(); ++i) read(list[i], Place(list_place, i));
}

const std::string& text_member(const Json& object, const Place& place, std::string_view name) {
  const Json& value = member(object, place, name);
  if (!value.is_string()) refuse(Place(place, name), "must be a text", value);
  return value.get_ref<const std::string&>();
}

const std::string& filled_text_member(const Json& object, const Place& place, std::string_view name) {
  const std::string& text = text_member(object, place, name);
  if (text.empty()) throw InvalidInput(Place(place, name).text(), "must not be empty", "\"\"");
  return text;
}

int answer_start_in(const Json& answer, const Place& place) {
  const Place start_place(place, std::string_view("answer_start"));
  const Json& start = member(answer, place, "answer_start");
  if (!start.is_number()) refuse(start_place, "must be an integer", start);
  return static_cast<int>(json::read_integer(json::Json(start), start_place, 0, std::numeric_limits<int>::max()));
}

/// A context with an index of its code points.
struct IndexedContext {
  const std::string& text;
  std::vector<std::size_t> starts;
};

void read_answer(const Json& answer, const Place& place, const IndexedContext& context, Question& question) {
  const std::string& text = filled_text_member(answer, place, "text");
  const int start = answer_start_in(answer, place);
  const auto index = static_cast<std::size_t>(start);
  const bool stands_there = index + 1 < context.starts.size() &&
                            std::string_view(context.text).substr(context.starts[index]).starts_with(text);
  if (!stands_there)
    throw InvalidInput(
        Place(place, std::string_view("answer_start")).text(),
        fmt::format("the context must have the answer's text there (code points, of {})", context.starts.size() - 1),
        std::to_string(start));
  if (question.answers.empty()) question.answer_start = start;
  question.answers.push_back(text);
}

// ---- Scores -------------------------------------------------------------------------------------

/// Returns what Python's str.isspace() does: true for Unicode's spaces, and for the four separators of ASCII.
bool is_python_space(UChar32 c) { return u_isUWhiteSpace(c) || (c >= 0x1C && c <= 0x1F); }

/// Returns whether Python's \w matches the character: a letter, or one with a numeric value. The underscore, which \w
/// matches too, has been removed as punctuation.
bool is_word_character(UChar32 c) { return u_isalpha(c) || u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) != U_NT_NONE; }

bool is_ascii_punctuation(UChar32 c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_article(const icu::UnicodeString& run) { return run == u"a" || run == u"an" || run == u"the"; }

/// The words to compare: in the order of the text, and sorted by code units to count common words.
struct Words {
  std::vector<icu::UnicodeString> in_order;
  std::vector<icu::UnicodeString> sorted;
};

/// Splits a text into words to compare. An article is removed if it is a whole run of word characters; the texts before
/// and after it become separate words.
Words words_of(std::string_view text) {
  icu::UnicodeString lower =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
  lower.toLower(icu::Locale::getRoot());
  Words words;
  icu::UnicodeString word, run;
  const auto end_word = [&] {
    if (!word.isEmpty()) words.in_order.push_back(word);
    word.remove();
  };
  const auto end_run = [&] {
    if (is_article(run))
      end_word();
    else
      word += run;
    run.remove();
  };
  for (std::int32_t i = 0; i < lower.length(); i = lower.moveIndex32(i, 1)) {
    const UChar32 c = lower.char32At(i);
    if (is_ascii_punctuation(c)) continue;
    if (is_word_character(c)) {
      run += c;
      continue;
    }
    end_run();
    if (is_python_space(c))
      end_word();
    else
      word += c;
  }
  end_run();
  end_word();
  words.sorted = words.in_order;
  std::sort(words.sorted.begin(), words.sorted.end());
  return words;
}

/// Returns whether there are no words, which is the right prediction for a question without an answer.
bool is_empty(const Words& words) { return words.in_order.empty(); }

double f1_of(const Words& prediction, const Words& answer) {
  std::vector<icu::UnicodeString> shared;
  std::set_intersection(prediction.sorted.begin(), prediction.sorted.end(), answer.sorted.begin(), answer.sorted.end(),
                        std::back_inserter(shared));
  if (shared.empty()) return 0;
  const auto num_shared = static_cast<double>(shared.size());
  const double precision = num_shared / static_cast<double>(prediction.sorted.size());
  const double recall = num_shared / static_cast<double>(answer.sorted.size());
  return (2 * precision * recall) / (precision + recall);
}

}  // namespace

bool QuestionSet::has_unanswerable() const {
  return std::ranges::any_of(questions, [](const Question& question) { return question.answers.empty(); });
}

QuestionSet read_squad(const std::filesystem::path& path) {
  const std::string source = path.string();
  const std::string content = read_utf8_file(path, std::numeric_limits<std::int32_t>::max());
  const Json root = parse_json<Json>(content, source);
  QuestionSet set;
  std::set<std::string_view> ids;
  const auto read_question = [&](const Json& json, const Place& place, const IndexedContext& context) {
    Question question{.id = filled_text_member(json, place, "id"),
                      .question = text_member(json, place, "question"),
                      .context = static_cast<int>(set.contexts.size()) - 1};
    if (!ids.insert(text_member(json, place, "id")).second)
      throw InvalidInput(Place(place, std::string_view("id")).text(), "must differ from every other question's",
                         '"' + question.id + '"');
    for_each_element(json, place, "answers", [&](const Json& answer, const Place& answer_place) {
      read_answer(answer, answer_place, context, question);
    });
    const auto impossible = json.find("is_impossible");
    const bool is_impossible = impossible != json.end() && *impossible == true;
    if (question.answers.empty() != is_impossible)
      throw InvalidInput(Place(place, std::string_view("answers")).text(),
                         is_impossible ? "must have none where is_impossible is true"
                                       : "must have an answer, or \"is_impossible\": true beside it",
                         is_impossible ? std::to_string(question.answers.size()) : "empty");
    set.questions.push_back(std::move(question));
  };
  for_each_element(root, Place(source), "data", [&](const Json& article, const Place& article_place) {
    for_each_element(article, article_place, "paragraphs", [&](const Json& paragraph, const Place& paragraph_place) {
      const std::string& text = text_member(paragraph, paragraph_place, "context");
      const IndexedContext context{text, code_point_starts(text)};
      set.contexts.push_back(text);
      for_each_element(paragraph, paragraph_place, "qas",
                       [&](const Json& question, const Place& place) { read_question(question, place, context); });
    });
  });
  if (set.questions.empty()) throw InvalidInput(source, "must have a question", "without one");
  return set;
}

std::string predictions_json(const Predictions& predictions) {
  return Json(predictions).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

double exact_match(std::string_view prediction, const std::vector<std::string>& answers) {
  const Words words = words_of(prediction);
  const auto same = [&](const std::string& answer) { return words_of(answer).in_order == words.in_order; };
  return (answers.empty() ? is_empty(words) : std::any_of(answers.begin(), answers.end(), same)) ? 1 : 0;
}

double f1_score(std::string_view prediction, const std::vector<std::string>& answers) {
  const Words words = words_of(prediction);
  if (answers.empty()) return is_empty(words) ? 1 : 0;
  double best = 0;
  for (const std::string& answer : answers) best = std::max(best, f1_of(words, words_of(answer)));
  return best;
}

QuestionScores scores_of(const QuestionSet& set, const Predictions& predictions) {
  QuestionScores scores{.count = static_cast<int>(set.questions.size())};
  const bool is_version_2 = set.has_unanswerable();
  for (const Question& question : set.questions) {
    const auto prediction = predictions.find(question.id);
    if (prediction == predictions.end()) continue;
    std::vector<std::string> answers = question.answers;
    if (is_version_2) std::erase_if(answers, [](const std::string& answer) { return is_empty(words_of(answer)); });
    scores.exact_match += exact_match(prediction->second, answers);
    scores.f1 += f1_score(prediction->second, answers);
  }
  if (scores.count == 0) return scores;
  scores.exact_match = 100.0 * scores.exact_match / scores.count;
  scores.f1 = 100.0 * scores.f1 / scores.count;
  return scores;
}

}  // namespace frostpipe
