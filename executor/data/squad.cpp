#include "executor/data/squad.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/json_nesting.h"
#include "profiles/json_reader.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using json::Place;

// ---- Code points --------------------------------------------------------------------------------

/// The byte at which each code point begins, and the text's size behind them.
std::vector<std::size_t> code_point_starts(std::string_view utf8) {
  std::vector<std::size_t> starts;
  const auto size = static_cast<std::ptrdiff_t>(utf8.size());
  for (std::ptrdiff_t i = 0; i < size;) {
    starts.push_back(static_cast<std::size_t>(i));
    UChar32 code_point;
    U8_NEXT(utf8.data(), i, size, code_point);
  }
  starts.push_back(utf8.size());
  return starts;
}

int num_code_points(std::string_view utf8) { return static_cast<int>(code_point_starts(utf8).size()) - 1; }

// ---- Reading ------------------------------------------------------------------------------------

/// Lists and objects are named, never shown: they may be nested deeper than the stack bears.
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

/// Calls read(element, its place) for each element of the list that is the member `name`.
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

/// A context as it is looked up by code point.
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

Json parsed(const std::string& source, std::string_view content) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  require_shallow_json(content, source);
  try {
    return Json::parse(content);
  } catch (const Json::parse_error& error) {
    throw InvalidInput(source, "must be JSON", fmt::format("wrong at byte {}", error.byte));
  } catch (const Json::exception&) {
    throw InvalidInput(source, "must be JSON whose numbers a double can hold", "with a greater one");
  }
}

// ---- Windows ------------------------------------------------------------------------------------

struct Part {
  std::size_t begin;
  std::size_t end;
};

/// Parts of `room` tokens, each beginning room - stride after the one before, until one reaches the end.
std::vector<Part> overlapping_parts(std::size_t num_tokens, std::size_t room, std::size_t stride) {
  std::vector<Part> parts;
  for (std::size_t begin = 0;; begin += room - stride) {
    parts.push_back({begin, std::min(begin + room, num_tokens)});
    if (parts.back().end == num_tokens) return parts;
  }
}

/// Positions within the context's tokens of the window.
void mark_answer(Window& window, int answer_begin, int answer_end) {
  const std::vector<TokenSpan>& spans = window.spans;
  if (spans.empty() || spans.front().begin > answer_begin || spans.back().end < answer_end) return;
  const auto behind_first = std::upper_bound(spans.begin(), spans.end(), answer_begin,
                                             [](int position, const TokenSpan& span) { return position < span.begin; });
  const auto last = std::lower_bound(spans.begin(), spans.end(), answer_end,
                                     [](const TokenSpan& span, int position) { return span.end < position; });
  const int first = static_cast<int>(behind_first - spans.begin()) - 1;
  window.start_position = window.num_question_tokens + first;
  window.end_position = window.num_question_tokens + std::max(first, static_cast<int>(last - spans.begin()));
}

Window window_of(int question, const std::vector<std::int32_t>& question_ids, const WordPiece::Pieces& context,
                 Part part, const WordPiece& tokenizer) {
  Window window{.question = question, .num_question_tokens = static_cast<int>(question_ids.size()) + 2};
  window.ids.reserve(question_ids.size() + (part.end - part.begin) + 3);
  window.ids.push_back(tokenizer.classification_id());
  window.ids.insert(window.ids.end(), question_ids.begin(), question_ids.end());
  window.ids.push_back(tokenizer.separator_id());
  const auto begin = static_cast<std::ptrdiff_t>(part.begin);
  const auto end = static_cast<std::ptrdiff_t>(part.end);
  window.ids.insert(window.ids.end(), context.ids.begin() + begin, context.ids.begin() + end);
  window.ids.push_back(tokenizer.separator_id());
  window.spans.assign(context.spans.begin() + begin, context.spans.begin() + end);
  return window;
}

// ---- Scores -------------------------------------------------------------------------------------

/// Python's str.isspace: Unicode's spaces, and the four separators of ASCII.
bool is_python_space(UChar32 c) { return u_isUWhiteSpace(c) || (c >= 0x1C && c <= 0x1F); }

/// Python's \w without the underscore, which is gone with the punctuation: letters and all that has a numeric value.
bool is_word_character(UChar32 c) { return u_isalpha(c) || u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE) != U_NT_NONE; }

bool is_ascii_punctuation(UChar32 c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_article(const icu::UnicodeString& run) { return run == u"a" || run == u"an" || run == u"the"; }

/// The words that are compared, sorted by their code units: of interest is only which there are and how often.
struct Words {
  std::vector<icu::UnicodeString> in_order;
  std::vector<icu::UnicodeString> sorted;
};

/// An article is a whole run of word characters; what stands beside it, without a space between, becomes two words.
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

QuestionSet read_squad(const std::filesystem::path& path) {
  const std::string source = path.string();
  const std::string content = read_text_file(path);
  if (content.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput(source, "must be shorter than 2^31 bytes", std::to_string(content.size()));
  const Json root = parsed(source, content);
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
    if (question.answers.empty())
      throw InvalidInput(Place(place, std::string_view("answers")).text(),
                         "must have an answer (a question without one is SQuAD 2.0's)", "empty");
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

std::vector<Window> windows_of(const QuestionSet& set, const WordPiece& tokenizer, int max_tokens, int stride) {
  constexpr int kSpecialTokens = 3;
  if (stride < 0) throw InvalidInput("stride of windows", "must be >= 0", std::to_string(stride));
  if (std::int64_t{max_tokens} <= std::int64_t{stride} + kSpecialTokens)
    throw InvalidInput("tokens of a window",
                       fmt::format("must be at least {} more than the stride ({})", kSpecialTokens + 1, stride),
                       std::to_string(max_tokens));
  std::vector<WordPiece::Pieces> contexts;
  contexts.reserve(set.contexts.size());
  for (const std::string& context : set.contexts) contexts.push_back(tokenizer.encode_with_spans(context));

  std::vector<Window> windows;
  for (std::size_t i = 0; i < set.questions.size(); ++i) {
    const Question& question = set.questions[i];
    const WordPiece::Pieces& context = contexts.at(static_cast<std::size_t>(question.context));
    std::vector<std::int32_t> ids = tokenizer.encode_with_spans(question.question).ids;
    const auto room = [&] { return max_tokens - kSpecialTokens - static_cast<std::ptrdiff_t>(ids.size()); };
    if (static_cast<std::ptrdiff_t>(context.ids.size()) > room() && room() <= stride)
      ids.resize(static_cast<std::size_t>(std::min(max_tokens / 2, max_tokens - kSpecialTokens - (stride + 1))));
    const int answer_end =
        question.answers.empty() ? 0 : question.answer_start + num_code_points(question.answers.front());
    for (const Part part :
         overlapping_parts(context.ids.size(), static_cast<std::size_t>(room()), static_cast<std::size_t>(stride))) {
      windows.push_back(window_of(static_cast<int>(i), ids, context, part, tokenizer));
      if (!question.answers.empty()) mark_answer(windows.back(), question.answer_start, answer_end);
    }
  }
  return windows;
}

std::vector<std::int32_t> token_types_of(const Window& window) {
  std::vector<std::int32_t> types(window.ids.size(), 1);
  std::fill_n(types.begin(), window.num_question_tokens, 0);
  return types;
}

SpanScore best_span(std::span<const SpanScore> spans) {
  FROSTPIPE_CHECK(!spans.empty(), "callers ask for the best of at least one span");
  const auto score = [](const SpanScore& span) {
    return std::isnan(span.score) ? -std::numeric_limits<double>::infinity() : span.score;
  };
  return *std::min_element(spans.begin(), spans.end(), [&](const SpanScore& a, const SpanScore& b) {
    return std::tuple(-score(a), a.window, a.start, a.end) < std::tuple(-score(b), b.window, b.start, b.end);
  });
}

std::string answer_text(const QuestionSet& set, const Window& window, int start_token, int end_token) {
  const int first = start_token - window.num_question_tokens;
  const int last = end_token - window.num_question_tokens;
  FROSTPIPE_CHECK(0 <= first && first <= last && last < static_cast<int>(window.spans.size()),
                  "an answer is a span of tokens of the context");
  const int context = set.questions.at(static_cast<std::size_t>(window.question)).context;
  const std::string& text = set.contexts.at(static_cast<std::size_t>(context));
  const std::vector<std::size_t> starts = code_point_starts(text);
  const std::size_t begin = starts.at(static_cast<std::size_t>(window.spans[static_cast<std::size_t>(first)].begin));
  const std::size_t end = starts.at(static_cast<std::size_t>(window.spans[static_cast<std::size_t>(last)].end));
  return text.substr(begin, end - begin);
}

Predictions predictions_of(const QuestionSet& set, const std::vector<Window>& windows,
                           std::span<const SpanScore> spans) {
  std::map<int, std::vector<SpanScore>> of_question;
  for (const SpanScore& span : spans)
    of_question[windows.at(static_cast<std::size_t>(span.window)).question].push_back(span);
  Predictions predictions;
  for (const auto& [question, candidates] : of_question) {
    const SpanScore best = best_span(candidates);
    predictions[set.questions.at(static_cast<std::size_t>(question)).id] =
        answer_text(set, windows[static_cast<std::size_t>(best.window)], best.start, best.end);
  }
  return predictions;
}

std::string predictions_json(const Predictions& predictions) {
  return Json(predictions).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

double exact_match(std::string_view prediction, const std::vector<std::string>& answers) {
  const Words words = words_of(prediction);
  const auto same = [&](const std::string& answer) { return words_of(answer).in_order == words.in_order; };
  return std::any_of(answers.begin(), answers.end(), same) ? 1 : 0;
}

double f1_score(std::string_view prediction, const std::vector<std::string>& answers) {
  const Words words = words_of(prediction);
  double best = 0;
  for (const std::string& answer : answers) best = std::max(best, f1_of(words, words_of(answer)));
  return best;
}

QuestionScores scores_of(const QuestionSet& set, const Predictions& predictions) {
  QuestionScores scores{.count = static_cast<int>(set.questions.size())};
  for (const Question& question : set.questions) {
    const auto prediction = predictions.find(question.id);
    if (prediction == predictions.end()) continue;
    scores.exact_match += exact_match(prediction->second, question.answers);
    scores.f1 += f1_score(prediction->second, question.answers);
  }
  if (scores.count == 0) return scores;
  scores.exact_match = 100.0 * scores.exact_match / scores.count;
  scores.f1 = 100.0 * scores.f1 / scores.count;
  return scores;
}

}  // namespace frostpipe
