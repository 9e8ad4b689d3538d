#include "executor/data/squad.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/data/wordpiece.h"
#include "profiles/error.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

class SquadTest : public test::ScratchFolderTest {
 protected:
  /// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, then "a" 4, "b" 5, ... "z" 29, and the same after "##" from 30.
  WordPiece letters() const {
    std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
    for (const char* before : {"", "##"})
      for (char letter = 'a'; letter <= 'z'; ++letter) lines += before + std::string(1, letter) + "\n";
    return WordPiece(file("vocab.txt", lines));
  }
  std::string refusal_of(std::string_view content) const {
    return message_of([&] { read_squad(file("q.json", content)); });
  }
};

/// One question about one context.
QuestionSet asked(std::string context, std::string question, std::string answer = "", int answer_start = 0) {
  QuestionSet set{.contexts = {std::move(context)}, .questions = {{.id = "q", .question = std::move(question)}}};
  if (!answer.empty()) set.questions[0].answers = {std::move(answer)};
  set.questions[0].answer_start = answer_start;
  return set;
}

/// The tokens of the context, as letters() numbers them: "abc" for each window.
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

// ---- Reading ------------------------------------------------------------------------------------

TEST_F(SquadTest, ReadsContextsAndQuestionsInTheirOrder) {
  const QuestionSet set = read_squad(file("q.json", R"({"version": "1.1", "data": [
    {"title": "Lakes", "paragraphs": [
      {"context": "The Züri lake is 40 km long.", "qas": [
        {"id": "2", "question": "How long?", "answers": [
          {"text": "40 km", "answer_start": 17}, {"text": "40", "answer_start": 17}]},
        {"id": "1", "question": "", "answers": [{"text": "The", "answer_start": 0}]}]},
      {"context": "", "qas": []}]},
    {"paragraphs": []},
    {"paragraphs": [{"context": "😀!", "qas": [{"id": "3", "question": "?", "answers": [
      {"text": "!", "answer_start": 1}]}]}]}]})"));
  EXPECT_EQ(set.contexts, (std::vector<std::string>{"The Züri lake is 40 km long.", "", "😀!"}));
  EXPECT_EQ(set.questions,
            (std::vector<Question>{
                {.id = "2", .question = "How long?", .context = 0, .answers = {"40 km", "40"}, .answer_start = 17},
                {.id = "1", .question = "", .context = 0, .answers = {"The"}, .answer_start = 0},
                {.id = "3", .question = "?", .context = 2, .answers = {"!"}, .answer_start = 1}}));
}

TEST_F(SquadTest, ReadingErrorsNameFilePlaceRuleAndValue) {
  const std::string answers = "data[0].paragraphs[0].qas[0].answers";
  const auto refusal_of_answers = [&](const std::string& list) {
    return refusal_of(
        R"({"data": [{"paragraphs": [{"context": "añb", "qas": [{"id": "1", "question": "?", "answers": )" + list +
        "}]}]}]}");
  };
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": 2}])"), "no InvalidInput");
  const std::string start = "q.json: " + answers + "[0].answer_start: ";
  const std::string not_there = start + "the context must have the answer's text there (code points, of 3), is ";
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": 3}])"), not_there + "3");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "bc", "answer_start": 2}])"), not_there + "2");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": 2147483647}])"), not_there + "2147483647");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": -1}])"), start + "must be >= 0, is -1");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": 2147483648}])"),
            start + "must be <= 2147483647, is 2147483648");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": 2.0}])"), start + "must be an integer, is 2.0");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": [2]}])"), start + "must be an integer, is a list");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b", "answer_start": 2}, {"text": "b", "answer_start": 0}])"),
            "q.json: " + answers +
                "[1].answer_start: the context must have the answer's text there (code points, of 3), is 0");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "b"}])"),
            "q.json: " + answers + R"([0]: must have the member "answer_start", is without it)");
  EXPECT_EQ(refusal_of_answers(R"([{"text": "", "answer_start": 2}])"),
            "q.json: " + answers + "[0].text: must not be empty, is \"\"");
  EXPECT_EQ(refusal_of_answers(R"([{"text": 7, "answer_start": 2}])"),
            "q.json: " + answers + "[0].text: must be a text, is 7");
  EXPECT_EQ(refusal_of_answers("[7]"), "q.json: " + answers + "[0]: must be an object, is 7");
  EXPECT_EQ(refusal_of_answers("{}"), "q.json: " + answers + ": must be a list, is an object");
  EXPECT_EQ(refusal_of_answers("[]"),
            "q.json: " + answers + ": must have an answer (a question without one is SQuAD 2.0's), is empty");

  const std::string qa = R"("question": "?", "answers": [{"text": "x", "answer_start": 0}]})";
  const auto refusal_of_questions = [&](const std::string& list) {
    return refusal_of(R"({"data": [{"paragraphs": [{"context": "x", "qas": [)" + list + "]}]}]}");
  };
  EXPECT_EQ(refusal_of_questions(R"({"id": "1", )" + qa + R"(, {"id": "1", )" + qa),
            R"(q.json: data[0].paragraphs[0].qas[1].id: must differ from every other question's, is "1")");
  EXPECT_EQ(refusal_of_questions(R"({"id": "", )" + qa),
            R"(q.json: data[0].paragraphs[0].qas[0].id: must not be empty, is "")");
  EXPECT_EQ(refusal_of_questions(R"({"id": 1, )" + qa),
            "q.json: data[0].paragraphs[0].qas[0].id: must be a text, is 1");

  EXPECT_EQ(refusal_of(R"({"data": [{"paragraphs": [{"context": null, "qas": []}]}]})"),
            "q.json: data[0].paragraphs[0].context: must be a text, is null");
  EXPECT_EQ(refusal_of(R"({"data": [{}]})"), R"(q.json: data[0]: must have the member "paragraphs", is without it)");
  EXPECT_EQ(refusal_of(R"({"data": []})"), "q.json: must have a question, is without one");
  EXPECT_EQ(refusal_of("{}"), R"(q.json: must have the member "data", is without it)");
  EXPECT_EQ(refusal_of("[]"), "q.json: must be an object, is a list");
  EXPECT_NE(message_of([&] { read_squad(folder_ / "missing.json"); }), "no InvalidInput");
}

TEST_F(SquadTest, RefusesWhatIsNoJson) {
  EXPECT_EQ(refusal_of(""), "q.json: must be JSON, is wrong at byte 1");
  EXPECT_EQ(refusal_of(R"({"data": [)"), "q.json: must be JSON, is wrong at byte 11");
  EXPECT_EQ(refusal_of("{\"data\": \"\xFF\"}"), "q.json: must be JSON, is wrong at byte 11");
  EXPECT_EQ(refusal_of(R"({"data": "\ud800"})"), "q.json: must be JSON, is wrong at byte 17");
  EXPECT_EQ(refusal_of(R"({"data": 1e999})"),
            "q.json: must be JSON whose numbers a double can hold, is with a greater one");
}

TEST_F(SquadTest, DeepNestingIsRefusedLikeAnyOtherWrongValue) {
  const std::string open(300'000, '['), close(300'000, ']');
  const std::string says = "q.json: must nest its lists and objects at most 100 deep, is deeper at byte ";
  for (const std::string& content :
       {open, open + close, R"({"data": [{"paragraphs": [{"context": )" + open + close + "}]}]}"})
    EXPECT_EQ(refusal_of(content).substr(0, says.size()), says);
}

TEST_F(SquadTest, SkipsAByteOrderMark) {
  const QuestionSet set =
      read_squad(file("q.json",
                      "\xEF\xBB\xBF{\"data\": [{\"paragraphs\": [{\"context\": \"x\", \"qas\": [{\"id\": "
                      "\"1\", \"question\": \"?\", \"answers\": [{\"text\": \"x\", "
                      "\"answer_start\": 0}]}]}]}]}"));
  EXPECT_EQ(set.questions.size(), 1u);
}

// ---- Windows ------------------------------------------------------------------------------------

TEST_F(SquadTest, AWindowHoldsQuestionAndContextBetweenSpecialTokens) {
  const std::vector<Window> windows = windows_of(asked("C d", "a b", "d", 2), letters(), 10, 2);
  EXPECT_EQ(windows, (std::vector<Window>{{.question = 0,
                                           .ids = {2, 4, 5, 3, 6, 7, 3},
                                           .num_question_tokens = 4,
                                           .spans = {{0, 1}, {2, 3}},
                                           .start_position = 5,
                                           .end_position = 5}}));
  EXPECT_EQ(token_types_of(windows[0]), (Ids{0, 0, 0, 0, 1, 1, 1}));
}

TEST_F(SquadTest, ALongContextIsCutIntoWindowsThatOverlapByTheStride) {
  // 3 special tokens and one of the question leave 4 of 8.
  const QuestionSet set = asked("a b c d e f g h", "q");
  const WordPiece w = letters();
  using Texts = std::vector<std::string>;
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 0)), (Texts{"abcd", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 1)), (Texts{"abcd", "defg", "gh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 2)), (Texts{"abcd", "cdef", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 8, 3)), (Texts{"abcd", "bcde", "cdef", "defg", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 11, 3)), (Texts{"abcdefg", "efgh"}));
  EXPECT_EQ(contexts_of(windows_of(set, w, 12, 3)), (Texts{"abcdefgh"}));
  EXPECT_EQ(windows_of(set, w, 8, 2)[2].spans, (std::vector<TokenSpan>{{8, 9}, {10, 11}, {12, 13}, {14, 15}}));
}

TEST_F(SquadTest, AContextWithoutTokensIsAWindowToo) {
  const std::vector<Window> windows = windows_of(asked(" ", ""), letters(), 8, 2);
  EXPECT_EQ(windows, (std::vector<Window>{{.ids = {2, 3, 3}, .num_question_tokens = 2}}));
  EXPECT_EQ(token_types_of(windows[0]), (Ids{0, 0, 1}));
}

TEST_F(SquadTest, AQuestionIsCutOnlyIfItLeavesNoRoom) {
  const WordPiece w = letters();
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

TEST_F(SquadTest, PositionsAreThoseOfTheFirstAnswersTokens) {
  const WordPiece w = letters();
  // [CLS] q [SEP]: the context begins at 3. Windows "abcd", "cdef", "efgh".
  const std::string context = "a b c d e f g h";
  const auto positions = [&](const char* answer, int start) {
    return positions_of(windows_of(asked(context, "q", answer, start), w, 8, 2));
  };
  EXPECT_EQ(positions("a", 0), (Positions{{3, 3}, {0, 0}, {0, 0}}));
  EXPECT_EQ(positions("c d", 4), (Positions{{5, 6}, {3, 4}, {0, 0}}));
  EXPECT_EQ(positions("b c d e", 2), (Positions{{0, 0}, {0, 0}, {0, 0}}));
  EXPECT_EQ(positions("d", 6), (Positions{{6, 6}, {4, 4}, {0, 0}}));  // also where it is a window's last token
  EXPECT_EQ(positions("g h", 12), (Positions{{0, 0}, {0, 0}, {5, 6}}));
}

TEST_F(SquadTest, PositionsWidenAnAnswerToWholeTokens) {
  const WordPiece w = letters();
  const auto positions = [&](const char* context, const char* answer, int start) {
    return positions_of(windows_of(asked(context, "q", answer, start), w, 20, 2));
  };
  // a ##b ##c d: tokens of one letter each.
  EXPECT_EQ(positions("abc d", "b", 1), (Positions{{4, 4}}));
  EXPECT_EQ(positions("abc d", "bc d", 1), (Positions{{4, 6}}));
  EXPECT_EQ(positions("abc d", "bc ", 1), (Positions{{4, 6}}));  // the space belongs to none before "d"
  EXPECT_EQ(positions("xx1x d", "1", 2), (Positions{{3, 3}}));   // "xx1x" is one unknown word
}

TEST_F(SquadTest, AnAnswerOfAPieceOfACharacterDoesNotEndBeforeItStarts) {
  // U+C548 falls into three letters, here three pieces with one span.
  const WordPiece w(file("v.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n\u110B\n##\u1161\n##\u11AB\nx\n"));
  const QuestionSet set = asked("\uC548 x", "x", "\uC548", 0);
  const std::vector<Window> windows = windows_of(set, w, 20, 2);
  EXPECT_EQ(windows[0].spans, (std::vector<TokenSpan>{{0, 1}, {0, 1}, {0, 1}, {2, 3}}));
  EXPECT_EQ(positions_of(windows), (Positions{{5, 5}}));
  EXPECT_EQ(answer_text(set, windows[0], 5, 5), "\uC548");
}

TEST_F(SquadTest, WindowsAreInTheOrderOfTheQuestions) {
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

TEST_F(SquadTest, WindowsNeedRoomForMoreThanTheStride) {
  const WordPiece w = letters();
  const QuestionSet set = asked("a", "q");
  EXPECT_EQ(message_of([&] { windows_of(set, w, 8, -1); }), "stride of windows: must be >= 0, is -1");
  EXPECT_EQ(message_of([&] { windows_of(set, w, 8, 5); }),
            "tokens of a window: must be at least 4 more than the stride (5), is 8");
  EXPECT_EQ(windows_of(set, w, 8, 4).size(), 1u);
  for (const int extreme : {std::numeric_limits<int>::max(), std::numeric_limits<int>::min()})
    EXPECT_NE(message_of([&] { windows_of(set, w, std::numeric_limits<int>::min(), extreme); }), "no InvalidInput");
  EXPECT_EQ(windows_of(set, w, std::numeric_limits<int>::max(), 0).size(), 1u);
}

// ---- Answers ------------------------------------------------------------------------------------

TEST(SquadAnswers, TheBestSpanHasTheHighestScore) {
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

TEST_F(SquadTest, AnAnswersTextIsThatOfTheContext) {
  const QuestionSet set = asked("Zoë\u0301  and É\u200Bb, 😀", "q");
  // z ##o ##e a ##n ##d e ##b , [UNK]
  const Window window = windows_of(set, letters(), 20, 2).at(0);
  EXPECT_EQ(window.num_question_tokens, 3);
  EXPECT_EQ(answer_text(set, window, 3, 3), "Z");
  EXPECT_EQ(answer_text(set, window, 3, 5), "Zoë");  // the second accent is of no token
  EXPECT_EQ(answer_text(set, window, 3, 6), "Zoë\u0301  a");
  EXPECT_EQ(answer_text(set, window, 9, 10), "É\u200Bb");
  EXPECT_EQ(answer_text(set, window, 11, 12), ", 😀");
  EXPECT_THROW(answer_text(set, window, 2, 3), InternalError);
  EXPECT_THROW(answer_text(set, window, 4, 3), InternalError);
  EXPECT_THROW(answer_text(set, window, 3, 13), InternalError);
}

TEST_F(SquadTest, PredictionsAreTheBestSpansOverAllWindowsOfAQuestion) {
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

TEST(SquadAnswers, PredictionsAreWrittenAsJson) {
  EXPECT_EQ(predictions_json({}), "{}\n");
  EXPECT_EQ(predictions_json({{"b", "\"é\"\n"}, {"a", "x\xFF"}}),
            "{\n  \"a\": \"x\uFFFD\",\n  \"b\": \"\\\"é\\\"\\n\"\n}\n");
}

// ---- Scores -------------------------------------------------------------------------------------

TEST(SquadScores, CasePunctuationArticlesAndSpacesDoNotCount) {
  EXPECT_EQ(exact_match("The  U.S. Army!", {"us army"}), 1);
  EXPECT_EQ(exact_match("an apple", {"apple"}), 1);
  EXPECT_EQ(exact_match("another apple", {"other apple"}), 0);
  EXPECT_EQ(exact_match("apple pie", {"pie apple"}), 0);
  EXPECT_EQ(exact_match("b", {"a", "c", "B."}), 1);
  EXPECT_EQ(exact_match("the", {"a"}), 1);
  EXPECT_EQ(exact_match("x", {}), 0);
}

TEST(SquadScores, F1IsTheHarmonicMeanOfPrecisionAndRecallOfTheWords) {
  // 2 of 3 words are right, and 2 of 4 are found: 2 x (2/3) x (2/4) / (2/3 + 2/4) = 4/7.
  EXPECT_DOUBLE_EQ(f1_score("x y q", {"x y z w"}), 4.0 / 7);
  EXPECT_DOUBLE_EQ(f1_score("x y q", {"nothing", "x y z w", "the q"}), 4.0 / 7);
  EXPECT_DOUBLE_EQ(f1_score("y x", {"x y"}), 1);
  // "two" counts as often as it stands in both: once.
  EXPECT_DOUBLE_EQ(f1_score("two two", {"two three"}), 0.5);
  EXPECT_EQ(f1_score("x", {"y"}), 0);
  EXPECT_EQ(f1_score("the", {"a"}), 0);  // no word is shared, though exact_match says 1
  EXPECT_EQ(f1_score("x", {}), 0);
}

TEST(SquadScores, AQuestionWithoutAPredictionCountsNothing) {
  const QuestionSet set{.contexts = {"x y z"},
                        .questions = {{.id = "1", .answers = {"x", "x y"}},
                                      {.id = "2", .answers = {"y z"}},
                                      {.id = "3", .answers = {"z"}},
                                      {.id = "4", .answers = {"z"}}}};
  // F1: 1, 2/3, 0 and nothing.
  const QuestionScores scores = scores_of(set, {{"1", "X Y"}, {"2", "y"}, {"4", "q"}, {"other", "z"}});
  EXPECT_EQ(scores.count, 4);
  EXPECT_DOUBLE_EQ(scores.exact_match, 25);
  EXPECT_DOUBLE_EQ(scores.f1, 100.0 * (1 + 2.0 / 3) / 4);
  EXPECT_EQ(scores_of({}, {{"1", "x"}}), QuestionScores{});
}

// ---- Oracle: transformers and Python (scripts/record-reference) ----------------------------------

TEST(SquadReference, ScoresAreThoseOfPython) {
  const Json scores = test::reference_data("squad_reference.json").at("scores");
  EXPECT_GE(scores.size(), 40u);
  for (const Json& one : scores) {
    const std::string prediction = one.at("prediction");
    const auto answers = one.at("answers").get<std::vector<std::string>>();
    EXPECT_EQ(exact_match(prediction, answers), one.at("exact_match").get<double>()) << one;
    EXPECT_EQ(f1_score(prediction, answers), one.at("f1").get<double>()) << one;
  }
}

TEST(SquadReference, WindowsAreThoseOfTransformers) {
  const std::optional<std::filesystem::path> folder = test::minilm_folder();
  if (!folder) GTEST_SKIP() << test::kNoMinilm;
  const WordPiece w(*folder / "vocab.txt", wordpiece_options_from(*folder));
  const QuestionSet set = read_squad(FROSTPIPE_TEST_DATA "/squad_reference.json");
  const Json expected = test::reference_data("squad_reference.json").at("windows");
  EXPECT_GE(expected.size(), 100u);
  std::size_t next = 0;
  while (next < expected.size()) {
    const int max_tokens = expected[next].at("max_tokens");
    const int stride = expected[next].at("stride");
    for (const Window& window : windows_of(set, w, max_tokens, stride)) {
      ASSERT_LT(next, expected.size());
      const Json& one = expected[next++];
      EXPECT_EQ(one.at("max_tokens"), max_tokens);
      EXPECT_EQ(one.at("stride"), stride);
      EXPECT_EQ(window.question, one.at("question").get<int>());
      EXPECT_EQ(window.ids, one.at("ids").get<Ids>()) << one;
      EXPECT_EQ(window.num_question_tokens, one.at("num_question_tokens").get<int>()) << one;
      EXPECT_EQ(window.spans.size() + static_cast<std::size_t>(window.num_question_tokens) + 1, window.ids.size());
      EXPECT_EQ((std::pair{window.spans.front().begin, window.spans.back().end}),
                (one.at("span").get<std::pair<int, int>>()));
      EXPECT_EQ((std::pair{window.start_position, window.end_position}),
                (one.at("positions").get<std::pair<int, int>>()))
          << one;
    }
  }
}

}  // namespace
}  // namespace frostpipe
