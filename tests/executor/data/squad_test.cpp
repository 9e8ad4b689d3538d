#include "executor/data/squad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

class SquadTest : public test::ScratchFolderTest {
 protected:
  std::string refusal_of(std::string_view content) const {
    return message_of([&] { read_squad(file("q.json", content)); });
  }
};

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

TEST_F(SquadTest, QuestionsMayHaveNoAnswerWhereTheFileSaysSo) {
  const auto read = [&](const std::string& qa) {
    return read_squad(
        file("q.json",
             R"({"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "1", "question": "?", )" + qa + "}]}]}]}"));
  };
  const QuestionSet set = read(R"("is_impossible": true, "answers": [], "plausible_answers": [{"text": "b"}])");
  EXPECT_EQ(set.questions, (std::vector<Question>{{.id = "1", .question = "?", .context = 0}}));
  EXPECT_TRUE(set.has_unanswerable());
  EXPECT_FALSE(read(R"("is_impossible": false, "answers": [{"text": "b", "answer_start": 2}])").has_unanswerable());
  EXPECT_EQ(message_of([&] { read(R"("is_impossible": true, "answers": [{"text": "b", "answer_start": 2}])"); }),
            "q.json: data[0].paragraphs[0].qas[0].answers: must have none where is_impossible is true, is 1");
}

/// By hand, as evaluate-v2.0.py counts: an empty prediction is right where there is no answer, and nowhere else.
TEST_F(SquadTest, AnEmptyPredictionIsRightWithoutAnAnswer) {
  const QuestionSet set{.contexts = {"x"},
                        .questions = {{.id = "a", .answers = {"Lake Zug"}},
                                      {.id = "b", .answers = {"Lake Zug"}},
                                      {.id = "c"},
                                      {.id = "d"},
                                      {.id = "e"},
                                      {.id = "f", .answers = {"Lake Zug"}}}};
  const Predictions predictions{{"a", "the lake zug"}, {"b", ""},    {"c", ""},
                                {"d", "Lake Zug"},     {"e", "The"}, {"f", "old lake"}};
  const QuestionScores scores = scores_of(set, predictions);
  EXPECT_DOUBLE_EQ(scores.exact_match, 100.0 * 3 / 6) << "a, c, e: an article is no word";
  EXPECT_DOUBLE_EQ(scores.f1, 100.0 * 3.5 / 6) << "of f, a word of two is right on either side";
}

/// By hand, as evaluate-v2.0.py counts: it drops answers that are empty without articles and punctuation, which
/// evaluate-v1.1.py keeps.
TEST_F(SquadTest, AnAnswerWithoutWordsCountsInVersion1Only) {
  QuestionSet set{.contexts = {"x"},
                  .questions = {{.id = "a", .answers = {"The", "Lake Zug"}}, {.id = "b", .answers = {"the!"}}}};
  const Predictions predictions{{"a", "a"}, {"b", ""}};
  EXPECT_EQ(scores_of(set, predictions), (QuestionScores{.exact_match = 100, .f1 = 0, .count = 2}));
  set.questions.push_back({.id = "c"});  // without an answer, so of version 2.0
  EXPECT_DOUBLE_EQ(scores_of(set, predictions).exact_match, 100.0 / 3) << "b; c has no prediction";
  EXPECT_DOUBLE_EQ(scores_of(set, predictions).f1, 100.0 / 3);
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
            "q.json: " + answers + ": must have an answer, or \"is_impossible\": true beside it, is empty");

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
  EXPECT_EQ(refusal_of(""),
            "q.json: line 1, column 1: is not valid JSON: syntax error while parsing value - unexpected end of "
            "input; expected '[', '{', or a literal");
  EXPECT_THAT(refusal_of(R"({"data": [)"), testing::StartsWith("q.json: line 1, column 11: is not valid JSON"));
  EXPECT_THAT(refusal_of("{\"data\": \"\xFF\"}"), testing::StartsWith("q.json:1: must be UTF-8 text"));
  EXPECT_THAT(refusal_of(R"({"data": "\ud800"})"), testing::StartsWith("q.json: line 1, column 17: is not valid JSON"));
  EXPECT_EQ(refusal_of(R"({"data": 1e999})"),
            "q.json: line 1, column 10: is not valid JSON: 1e999 is more than a double can hold");
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

// ---- Answers ------------------------------------------------------------------------------------

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
  // "two" counts as often as it occurs in both: once.
  EXPECT_DOUBLE_EQ(f1_score("two two", {"two three"}), 0.5);
  EXPECT_EQ(f1_score("x", {"y"}), 0);
  EXPECT_EQ(f1_score("the", {"a"}), 0);  // no word is common, though exact_match is 1
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

}  // namespace
}  // namespace frostpipe
