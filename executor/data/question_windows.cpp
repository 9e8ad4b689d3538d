#include "executor/data/question_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"

namespace frostpipe {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";

struct Part {
  std::size_t begin;
  std::size_t end;
};

/// Returns parts of `room` tokens, each beginning room - stride after the previous one, until one reaches the end; the
/// last one may be shorter. Unless one part holds all tokens, `room` must be greater than `stride`.
std::vector<Part> overlapping_parts(std::size_t num_tokens, std::size_t room, std::size_t stride) {
  std::vector<Part> parts;
  for (std::size_t begin = 0;; begin += room - stride) {
    parts.push_back({begin, std::min(begin + room, num_tokens)});
    if (parts.back().end == num_tokens) return parts;
  }
}

/// Sets start_position and end_position if the window contains the whole answer, [answer_begin, answer_end) in code
/// points of the context.
void mark_answer(Window& window, int answer_begin, int answer_end) {
  const std::vector<TokenSpan>& spans = window.spans;
  if (spans.empty() || spans.front().begin > answer_begin || spans.back().end < answer_end) return;
  const auto after_first = std::upper_bound(spans.begin(), spans.end(), answer_begin,
                                            [](int position, const TokenSpan& span) { return position < span.begin; });
  const auto last = std::lower_bound(spans.begin(), spans.end(), answer_end,
                                     [](const TokenSpan& span, int position) { return span.end < position; });
  const int first = static_cast<int>(after_first - spans.begin()) - 1;
  window.start_position = window.num_question_tokens + first;
  window.end_position = window.num_question_tokens + std::max(first, static_cast<int>(last - spans.begin()));
}

void append(std::vector<std::int32_t>& ids, std::span<const std::int32_t> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

Window window_of(int question, std::span<const std::int32_t> question_ids, const SpannedTokens& context, Part part,
                 const PairTokenizer& tokenizer) {
  Window window{.question = question};
  append(window.ids, tokenizer.frame.before);
  append(window.ids, question_ids);
  append(window.ids, tokenizer.frame.between);
  window.num_question_tokens = static_cast<int>(window.ids.size());
  append(window.ids, std::span(context.ids).subspan(part.begin, part.end - part.begin));
  append(window.ids, tokenizer.frame.after);
  const auto spans = std::span(context.spans).subspan(part.begin, part.end - part.begin);
  window.spans.assign(spans.begin(), spans.end());
  return window;
}

}  // namespace

PairTokenizer pair_tokenizer(Tokenizer tokenizer) {
  const PairFrame frame = tokenizer.pair_frame();
  return {
      .encode = [tokenizer = std::move(tokenizer)](std::string_view text) { return tokenizer.encode_with_spans(text); },
      .frame = frame};
}

std::vector<Window> windows_of(const QuestionSet& set, const PairTokenizer& tokenizer, int max_tokens, int stride) {
  const int num_special =
      static_cast<int>(tokenizer.frame.before.size() + tokenizer.frame.between.size() + tokenizer.frame.after.size());
  if (stride < 0) throw InvalidInput("--window-overlap", "must be >= 0", std::to_string(stride));
  if (std::int64_t{max_tokens} <= std::int64_t{stride} + num_special)
    throw InvalidInput(
        "--max-tokens",
        fmt::format("must be at least {} more than --window-overlap ({}), for a window of a context to advance",
                    num_special + 1, stride),
        std::to_string(max_tokens));
  std::vector<SpannedTokens> contexts;
  contexts.reserve(set.contexts.size());
  std::vector<std::string> places(set.contexts.size(), "a text without questions");
  for (const Question& question : set.questions)
    places.at(static_cast<std::size_t>(question.context)) = "the text of question " + in_quotes(question.id);
  for (std::size_t i = 0; i < set.contexts.size(); ++i)
    contexts.push_back(with_place(places[i], [&] { return tokenizer.encode(set.contexts[i]); }));

  std::vector<Window> windows;
  for (std::size_t i = 0; i < set.questions.size(); ++i) {
    const Question& question = set.questions[i];
    const SpannedTokens& context = contexts.at(static_cast<std::size_t>(question.context));
    std::vector<std::int32_t> ids =
        with_place("question " + in_quotes(question.id), [&] { return tokenizer.encode(question.question).ids; });
    const auto room = [&] { return max_tokens - num_special - static_cast<std::ptrdiff_t>(ids.size()); };
    if (static_cast<std::ptrdiff_t>(context.ids.size()) > room() && room() <= stride)
      ids.resize(static_cast<std::size_t>(std::min(max_tokens / 2, max_tokens - num_special - (stride + 1))));
    const int answer_end =
        question.answers.empty()
            ? 0
            : question.answer_start + static_cast<int>(code_point_starts(question.answers.front()).size()) - 1;
    for (const Part part :
         overlapping_parts(context.ids.size(), static_cast<std::size_t>(room()), static_cast<std::size_t>(stride))) {
      windows.push_back(window_of(static_cast<int>(i), ids, context, part, tokenizer));
      if (!question.answers.empty()) mark_answer(windows.back(), question.answer_start, answer_end);
    }
  }
  return windows;
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
  const std::string_view answer = std::string_view(text).substr(begin, end - begin);
  const std::size_t first_letter = answer.find_first_not_of(kSpaces);
  if (first_letter == std::string_view::npos) return "";
  return std::string(answer.substr(first_letter, answer.find_last_not_of(kSpaces) + 1 - first_letter));
}

Predictions predictions_of(const QuestionSet& set, const std::vector<Window>& windows, std::span<const SpanScore> spans,
                           std::span<const NullScore> nulls) {
  std::map<int, double> null_of_question;
  for (const NullScore& null : nulls) {
    const int question = windows.at(static_cast<std::size_t>(null.window)).question;
    const auto found = null_of_question.emplace(question, null.score).first;
    found->second = std::min(found->second, null.score);
  }
  std::map<int, std::vector<SpanScore>> of_question;
  for (const SpanScore& span : spans)
    of_question[windows.at(static_cast<std::size_t>(span.window)).question].push_back(span);
  Predictions predictions;
  for (const auto& [question, score] : null_of_question)
    predictions[set.questions.at(static_cast<std::size_t>(question)).id] = "";
  for (const auto& [question, candidates] : of_question) {
    const SpanScore best = best_span(candidates);
    const auto null = null_of_question.find(question);
    if (null != null_of_question.end() && null->second > best.score) continue;
    predictions[set.questions.at(static_cast<std::size_t>(question)).id] =
        answer_text(set, windows[static_cast<std::size_t>(best.window)], best.start, best.end);
  }
  return predictions;
}

}  // namespace frostpipe
