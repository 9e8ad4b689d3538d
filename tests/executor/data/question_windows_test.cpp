#include "executor/data/question_windows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

class QuestionWindowsTest : public test::ScratchFolderTest {
 protected:
  /// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, then "a" 4, "b" 5, ... "z" 29, and the same after "##" from 30.
  PairTokenizer letters() const {
    std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
    for (const char* before : {"", "##"})
      for (char letter = 'a'; letter <= 'z'; ++letter) lines += before + std::string(1, letter) + "\n";
    file("vocab.txt", lines);
    return pair_tokenizer(Tokenizer(folder_));
  }
};

/// One question about one context.
QuestionSet asked(std::string context, std::string question, std::string answer = "", int answer_start = 0) {
  QuestionSet set{.contexts = {std::move(context)}, .questions = {{.id = "q", .question = std::move(question)}}};
  if (!answer.empty()) set.questions[0].answers = {std::move(answer)};
  set.questions[0].answer_start = answer_start;
  return set;
}

/// Returns the context of each window as the letters of its tokens (see letters()), such as "abcd".
std::vector<std::string> contexts_of(const std::vector<Window>& windows) {
  std::vector<std::string> texts;
  for (const Window& window : windows) {
    texts.emplace_back();
    for (std::size_t i = 0; i < window.spans.size(); ++i)
      texts.back() +=
          static_cast<char>('a' + (window.ids[static_cast<std::size_t>(window.num_question_tokens) + i] - 4) % 26);
  }
  return texts;
}

using Positions = std::vector<std::pair<int, int>>;

Positions positions_of(const std::vector<Window>& windows) {
  Positions positions;
  for (const Window& window : windows) positions.emplace_back(window.start_position, window.end_position);
  return positions;
}

// ---- Windows ------------------------------------------------------------------------------------

TEST_F(QuestionWindowsTest, AWindowHoldsQuestionAndContextBetweenSpecialTokens) {
  const std::vector<Window> windows = windows_of(asked("C d", "a b", "d", 2), letters(), 10, 2);
  EXPECT_EQ(windows, (std::vector<Window>{{.question = 0,
                                           .ids = {2, 4, 5, 3, 6, 7, 3},
                                           .num_question_tokens = 4,
                                           .spans = {{0, 1}, {2, 3}},
                                           .start_position = 5,
                                           .end_position = 5}}));
}

TEST_F(QuestionWindowsTest, ALongContextIsCutIntoWindowsThatOverlapByTheStride) {
  // 3 special tokens and one of the question leave 4 of 8.
  const QuestionSet set = asked("a b c d e f g h", "q");
  const PairTokenizer w = letters();
  using Texts = std::vector<std::string>;
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 0)), (Texts{"abcd", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 1)), (Texts{"abcd", "defg", "gh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 2)), (Texts{"abcd", "cdef", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 3)), (Texts{"abcd", "bcde", "cdef", "defg", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 11, 3)), (Texts{"abcdefg", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 12, 3)), (Texts{"abcdefgh"}));
  EXPECT_EQ(windows_of(set, w, 8, 2)[2].spans, (std::vector<TokenSpan>{{8, 9}, {10, 11}, {12, 13}, {14, 15}}));
}

TEST_F(QuestionWindowsTest, AContextWithoutTokensIsAWindowToo) {
  const std::vector<Window> windows = windows_of(asked(" ", ""), letters(), 8, 2);
  EXPECT_EQ(windows, (std::vector<Window>{{.ids = {2, 3, 3}, .num_question_tokens = 2}}));
}

TEST_F(QuestionWindowsTest, AQuestionIsCutOnlyIfItLeavesNoRoom) {
  const PairTokenizer w = letters();
  const auto num_question_tokens = [&](const char* question, const char* context, int max_tokens, int stride) {
    const std::vector<Window> windows = windows_of(asked(context, question), w, max_tokens, stride);
    for (const Window& window : windows) EXPECT_LE(window.ids.size(), static_cast<std::size_t>(max_tokens));
    return windows[0].num_question_tokens - 2;
  };
  const char* const nine = "a b c d e f g h i";
  EXPECT_EQ(num_question_tokens(nine, "a b c d e", 16, 3), 9);  // 4 of the context at once: 3 old, 1 new
  EXPECT_EQ(num_question_tokens(nine, "a b c d e", 16, 4), 8);  // 16 / 2
  EXPECT_EQ(num_question_tokens(nine, "a b c d", 16, 4), 9);    // all fits
  EXPECT_EQ(num_question_tokens(nine, "a b c d e", 8, 1), 3);   // 4 would leave 1, no more than the stride
  EXPECT_EQ(num_question_tokens(nine, "a b c d e", 8, 4), 0);
  EXPECT_EQ(num_question_tokens(nine, "", 8, 0), 4);
}

TEST_F(QuestionWindowsTest, PositionsAreThoseOfTheFirstAnswersTokens) {
  const PairTokenizer w = letters();
  // [CLS] q [SEP]: the context begins at 3. Windows "abcd", "cdef", "efgh".
  const std::string context = "a b c d e f g h";
  const auto positions = [&](const char* answer, int start) {
    return positions_of(windows_of(asked(context, "q", answer, start), w, 8, 2));
  };
  EXPECT_EQ(positions("a", 0), (Positions{{3, 3}, {0, 0}, {0, 0}}));
  EXPECT_EQ(positions("c d", 4), (Positions{{5, 6}, {3, 4}, {0, 0}}));
  EXPECT_EQ(positions("b c d e", 2), (Positions{{0, 0}, {0, 0}, {0, 0}}));
  EXPECT_EQ(positions("d", 6), (Positions{{6, 6}, {4, 4}, {0, 0}}));  // also if it is a window's last token
  EXPECT_EQ(positions("g h", 12), (Positions{{0, 0}, {0, 0}, {5, 6}}));
}

TEST_F(QuestionWindowsTest, PositionsWidenAnAnswerToWholeTokens) {
  const PairTokenizer w = letters();
  const auto positions = [&](const char* context, const char* answer, int start) {
    return positions_of(windows_of(asked(context, "q", answer, start), w, 20, 2));
  };
  // a ##b ##c d: tokens of one letter each.
  EXPECT_EQ(positions("abc d", "b", 1), (Positions{{4, 4}}));
  EXPECT_EQ(positions("abc d", "bc d", 1), (Positions{{4, 6}}));
  EXPECT_EQ(positions("abc d", "bc ", 1), (Positions{{4, 6}}));  // the space belongs to no token before "d"
  EXPECT_EQ(positions("xx1x d", "1", 2), (Positions{{3, 3}}));   // "xx1x" is one unknown word
}

TEST_F(QuestionWindowsTest, AnAnswerOfAPieceOfACharacterDoesNotEndBeforeItStarts) {
  // U+C548 decomposes into three letters, here three pieces with one span.
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n\u110B\n##\u1161\n##\u11AB\nx\n");
  const PairTokenizer w = pair_tokenizer(Tokenizer(folder_));
  const QuestionSet set = asked("\uC548 x", "x", "\uC548", 0);
  const std::vector<Window> windows = windows_of(set, w, 20, 2);
  EXPECT_EQ(windows[0].spans, (std::vector<TokenSpan>{{0, 1}, {0, 1}, {0, 1}, {2, 3}}));
  EXPECT_EQ(positions_of(windows), (Positions{{5, 5}}));
  EXPECT_EQ(answer_text(set, windows[0], 5, 5), "\uC548");
}

TEST_F(QuestionWindowsTest, WindowsAreInTheOrderOfTheQuestions) {
  const QuestionSet set{.contexts = {"a b c d e f", "g"},
                        .questions = {{.id = "1", .question = "q", .context = 1},
                                      {.id = "2", .question = "q", .context = 0},
                                      {.id = "3", .question = "q q", .context = 0}}};
  const std::vector<Window> windows = windows_of(set, letters(), 8, 0);
  std::vector<int> questions;
  for (const Window& window : windows) questions.push_back(window.question);
  EXPECT_EQ(questions, (std::vector<int>{0, 1, 1, 2, 2}));
  EXPECT_EQ(contexts_of(windows), (std::vector<std::string>{"g", "abcd", "ef", "abc", "def"}));
}

TEST_F(QuestionWindowsTest, WindowsNeedRoomForMoreThanTheirOverlap) {
  const PairTokenizer w = letters();
  const QuestionSet set = asked("a", "q");
  EXPECT_EQ(message_of([&] { windows_of(set, w, 8, -1); }), "--window-overlap: must be >= 0, is -1");
  EXPECT_EQ(
      message_of([&] { windows_of(set, w, 8, 5); }),
      "--max-tokens: must be at least 4 more than --window-overlap (5), for a window of a context to advance, is 8");
  EXPECT_EQ(windows_of(set, w, 8, 4).size(), 1u);
  for (const int extreme : {std::numeric_limits<int>::max(), std::numeric_limits<int>::min()})
    EXPECT_NE(message_of([&] { windows_of(set, w, std::numeric_limits<int>::min(), extreme); }), "no InvalidInput");
  EXPECT_EQ(windows_of(set, w, std::numeric_limits<int>::max(), 0).size(), 1u);
}

// ---- Answers ------------------------------------------------------------------------------------

TEST(QuestionWindows, TheBestSpanHasTheHighestScore) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<SpanScore> spans = {{0, 5, 6, 1.5}, {2, 7, 7, 2.5}, {1, 4, 9, 2.25}, {3, 4, 9, nan}};
  EXPECT_EQ(best_span(spans), spans[1]);
  const std::vector<SpanScore> equal = {{1, 5, 5, 2}, {0, 6, 7, 2}, {0, 5, 9, 2}, {0, 5, 8, 2}, {0, 1, 1, -infinity}};
  EXPECT_EQ(best_span(equal), equal[3]);
  EXPECT_EQ(best_span(std::vector<SpanScore>{{0, 5, 5, nan}, {1, 6, 6, -infinity}}).start, 5);
  EXPECT_EQ(best_span(std::vector<SpanScore>{{1, 5, 5, nan}, {1, 6, 6, -1}}).start, 6);
  EXPECT_THROW(best_span({}), InternalError);
}

TEST_F(QuestionWindowsTest, AnAnswersTextIsThatOfTheContext) {
  const QuestionSet set = asked("Zoë\u0301  and É\u200Bb, 😀", "q");
  // z ##o ##e a ##n ##d e ##b , [UNK]
  const Window window = windows_of(set, letters(), 20, 2).at(0);
  EXPECT_EQ(window.num_question_tokens, 3);
  EXPECT_EQ(answer_text(set, window, 3, 3), "Z");
  EXPECT_EQ(answer_text(set, window, 3, 5), "Zoë");  // the second accent belongs to no token
  EXPECT_EQ(answer_text(set, window, 3, 6), "Zoë\u0301  a");
  EXPECT_EQ(answer_text(set, window, 9, 10), "É\u200Bb");
  EXPECT_EQ(answer_text(set, window, 11, 12), ", 😀");
  EXPECT_THROW(answer_text(set, window, 2, 3), InternalError);
  EXPECT_THROW(answer_text(set, window, 4, 3), InternalError);
  EXPECT_THROW(answer_text(set, window, 3, 13), InternalError);
}

TEST_F(QuestionWindowsTest, PredictionsAreTheBestSpansOverAllWindowsOfAQuestion) {
  const QuestionSet set{.contexts = {"a b c d e f", "g h"},
                        .questions = {{.id = "long", .question = "q", .context = 0},
                                      {.id = "short", .question = "q", .context = 1},
                                      {.id = "unanswered", .question = "q", .context = 1}}};
  const std::vector<Window> windows = windows_of(set, letters(), 8, 2);  // abcd cdef gh gh
  const std::vector<SpanScore> spans = {{0, 3, 4, 0.5}, {2, 3, 4, -3}, {1, 5, 6, 0.75}};
  const Predictions predictions = predictions_of(set, windows, spans);
  EXPECT_EQ(predictions, (Predictions{{"long", "e f"}, {"short", "g h"}}));
  EXPECT_EQ(Json::parse(predictions_json(predictions)).get<Predictions>(), predictions);
}

/// `name` is the name of a list in the reference file.
void expect_windows_of_transformers(const PairTokenizer& tokenizer, const char* name) {
  const QuestionSet set = read_squad(FROSTPIPE_TEST_DATA "/squad_reference.json");
  const Json& expected = test::reference_data("squad_reference.json").at(name);
  EXPECT_GE(expected.size(), 100u);
  std::size_t next = 0;
  while (next < expected.size()) {
    const int max_tokens = expected[next].at("max_tokens");
    const int stride = expected[next].at("stride");
    for (const Window& window : windows_of(set, tokenizer, max_tokens, stride)) {
      ASSERT_LT(next, expected.size());
      const Json& one = expected[next++];
      EXPECT_EQ(one.at("max_tokens"), max_tokens);
      EXPECT_EQ(one.at("stride"), stride);
      EXPECT_EQ(window.question, one.at("question").get<int>());
      EXPECT_EQ(window.ids, one.at("ids").get<Ids>()) << one;
      EXPECT_EQ(window.num_question_tokens, one.at("num_question_tokens").get<int>()) << one;
      EXPECT_EQ(
          window.spans.size() + static_cast<std::size_t>(window.num_question_tokens) + tokenizer.frame.after.size(),
          window.ids.size());
      EXPECT_EQ((std::pair{window.spans.front().begin, window.spans.back().end}),
                (one.at("span").get<std::pair<int, int>>()));
      EXPECT_EQ((std::pair{window.start_position, window.end_position}),
                (one.at("positions").get<std::pair<int, int>>()))
          << one;
    }
  }
}

TEST(QuestionWindowsReference, WindowsOfWordPiecesAreThoseOfTransformers) {
  const std::optional<std::filesystem::path> folder = test::minilm_folder();
  if (!folder) GTEST_SKIP() << test::kNoMinilm;
  expect_windows_of_transformers(pair_tokenizer(Tokenizer(*folder)), "windows");
}

TEST_F(QuestionWindowsTest, WindowsOfByteLevelTokensAreThoseOfTransformers) {
  test::write_small_byte_level_vocabulary(folder_);
  expect_windows_of_transformers(pair_tokenizer(Tokenizer(folder_)), "byte_level_windows");
}

TEST_F(QuestionWindowsTest, AnAnswerOfByteLevelTokensHasNoSpacesAroundIt) {
  test::write_small_byte_level_vocabulary(folder_);
  const QuestionSet set = asked("of \u00e9  ", "q");
  const Window window = windows_of(set, pair_tokenizer(Tokenizer(folder_)), 20, 2).at(0);
  const auto from = [&](std::size_t first) {
    return answer_text(set, window, window.num_question_tokens + static_cast<int>(first),
                       window.num_question_tokens + static_cast<int>(window.spans.size()) - 1);
  };
  EXPECT_EQ(from(0), "of \u00e9");
  EXPECT_EQ(from(window.spans.size() - 1), "");
}

}  // namespace
}  // namespace frostpipe
