// Oracle: the Open Inference Protocol, version 2, and the definition of the fake models' answers.
#include "serving/server/http/infer_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/serving/server/http/fake_models.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string answer_to(std::string_view body, const RequestForm& form) {
  const InferRequest request = read_infer_request(body, form);
  std::vector<RequestAnswer> answers;
  for (const RequestInput& row : request.rows) answers.push_back(test::plain_answer(form.task, row));
  return infer_answer("m", form, request, answers);
}

TEST(InferRequest, IsReadAndAnsweredAsInTheProtocol) {
  const std::string body = R"({
    "id" : "42",
    "parameters" : {"priority" : 3},
    "inputs" : [
      {"name" : "input_ids", "shape" : [2, 3], "datatype" : "INT64", "parameters" : {}, "data" : [1, 7, 2, 1, 8, 299]}
    ],
    "outputs" : [{"name" : "probability"}, {"name" : "label", "parameters" : {"binary_data" : false}}]
  })";
  const InferRequest request = read_infer_request(body, test::text_form());
  ASSERT_EQ(request.rows.size(), 2u);
  EXPECT_THAT(request.rows[0].tokens, ElementsAre(1, 7, 2));
  EXPECT_THAT(request.rows[1].tokens, ElementsAre(1, 8, 299));
  EXPECT_EQ(infer_answer("m", test::text_form(), request, {{.values = {0, 0.75}}, {.values = {1, 0.1}}}),
            R"({"model_name":"m","id":"42","outputs":[)"
            R"({"name":"probability","datatype":"FP64","shape":[2],"data":[0.75,0.1]},)"
            R"({"name":"label","datatype":"BYTES","shape":[2],"data":["even","odd"]}]})");
}

TEST(InferRequest, TextsBecomeTokensAndAllOutputsAreGivenWhereNoneIsNamed) {
  EXPECT_EQ(answer_to(R"({"inputs":[{"name":"text","shape":[2],"datatype":"BYTES","data":["ab","\u00e9ab"]}]})",
                      test::text_form()),
            R"({"model_name":"m","outputs":[)"
            R"({"name":"label","datatype":"BYTES","shape":[2],"data":["even","even"]},)"
            R"({"name":"label_id","datatype":"INT64","shape":[2],"data":[0,0]},)"
            R"({"name":"probability","datatype":"FP64","shape":[2],"data":[0.25,0.16666666666666666]}]})");
}

TEST(InferRequest, ATextIsOfOneMebibyteAtMostAndEachOneCanBeStopped) {
  const auto body = [](std::size_t size) {
    return R"({"inputs":[{"name":"text","shape":[2],"datatype":"BYTES","data":["ab",")" + std::string(size, 'a') +
           R"("]}]})";
  };
  EXPECT_NO_THROW(read_infer_request(body(1 << 20), test::text_form()));
  EXPECT_THAT([&] { read_infer_request(body((1 << 20) + 1), test::text_form()); },
              testing::ThrowsMessage<InvalidInput>(
                  "request: inputs[0].data[1]: must have at most 1048576 bytes, is one of 1048577"));
  int looks = 0;
  const auto stop = [&] {
    if (++looks == 2) throw RuntimeFailure("stopped");
  };
  EXPECT_THROW(read_infer_request(body(2), test::text_form(), stop), RuntimeFailure) << "before the second text";
}

// Token 2 ends all texts of these models.
TEST(InferRequest, TokensThatTheModelIsNotToSeeAreDroppedAfterTextsAreCut) {
  RequestForm form = test::text_form();
  form.drop_padding = [](std::vector<std::int32_t>& tokens) {
    while (tokens.size() > 1 && tokens.back() == 2) tokens.pop_back();
  };
  const InferRequest texts = read_infer_request(
      R"({"inputs":[{"name":"text","shape":[2],"datatype":"BYTES","data":["a","123456789"]}]})", form);
  EXPECT_THAT(texts.rows[0].tokens, ElementsAre(1, 'a'));
  EXPECT_EQ(texts.rows[1].tokens.size(), 9u);
  EXPECT_TRUE(texts.rows[1].is_cut);
  const InferRequest ids = read_infer_request(
      R"({"inputs":[{"name":"input_ids","shape":[2,3],"datatype":"INT64","data":[1,2,2,2,2,2]}]})", form);
  EXPECT_THAT(ids.rows[0].tokens, ElementsAre(1));
  EXPECT_THAT(ids.rows[1].tokens, ElementsAre(2));
}

TEST(InferRequest, ATextWithMoreTokensThanTheModelTakesIsMarkedAsCut) {
  const InferRequest request = read_infer_request(
      R"({"inputs":[{"name":"text","shape":[3],"datatype":"BYTES","data":["a","12345678","123456789"]}]})",
      test::text_form());
  std::vector<bool> are_cut;
  for (const RequestInput& row : request.rows) are_cut.push_back(row.is_cut);
  EXPECT_THAT(are_cut, ElementsAre(false, false, true));
}

TEST(InferRequest, PicturesAreReadFlatOrNested) {
  const std::string flat = R"({"inputs":[{"name":"pixel_values","shape":[1,3,2,2],"datatype":"FP32",
                               "data":[0.5,-1,2e-3,3,4,5,6,7,8,9,10,11]}]})";
  const std::string nested = R"({"inputs":[{"name":"pixel_values","shape":[1,3,2,2],"datatype":"FP32",
                                 "data":[[[[0.5,-1],[2e-3,3]],[[4,5],[6,7]],[[8,9],[10,11]]]]}]})";
  const InferRequest request = read_infer_request(flat, test::picture_form());
  ASSERT_EQ(request.rows.size(), 1u);
  EXPECT_THAT(*request.rows[0].pixels, ElementsAre(0.5F, -1, 2e-3F, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(*read_infer_request(nested, test::picture_form()).rows[0].pixels, *request.rows[0].pixels);
}

TEST(InferRequest, NestedTokensAreThoseOfTheFlatList) {
  const auto request = read_infer_request(
      R"({"inputs":[{"name":"input_ids","shape":[2,2],"datatype":"INT32","data":[[1,7],[8,9]]}]})", test::text_form());
  EXPECT_THAT(request.rows.at(0).tokens, ElementsAre(1, 7));
  EXPECT_THAT(request.rows.at(1).tokens, ElementsAre(8, 9));
}

TEST(InferRequest, ALanguageModelAnswersWithLossAndCounts) {
  EXPECT_EQ(answer_to(R"({"inputs":[{"name":"input_ids","shape":[1,3],"datatype":"INT64","data":[1,7,2]}]})",
                      test::language_form()),
            R"({"model_name":"m","outputs":[{"name":"loss","datatype":"FP64","shape":[1],"data":[0.3333333333333333]},)"
            R"({"name":"num_predicted","datatype":"INT64","shape":[1],"data":[2]},)"
            R"({"name":"num_correct","datatype":"INT64","shape":[1],"data":[1]}]})");
}

RequestForm form_of_two_heads() {
  RequestForm form = test::text_form();
  form.heads = {{.name = "parity", .label_names = {"even", "odd"}}, {.name = "size", .label_names = {"s", "m", "l"}}};
  return form;
}

TEST(InferRequest, EveryHeadAnswersUnderItsName) {
  const InferRequest request = {.rows = {{}, {}}};
  EXPECT_EQ(
      infer_answer("m", form_of_two_heads(), request, {{.values = {0, 0.75, 2, 0.5}}, {.values = {1, 0.25, 1, 0.125}}}),
      R"({"model_name":"m","outputs":[)"
      R"({"name":"parity.label","datatype":"BYTES","shape":[2],"data":["even","odd"]},)"
      R"({"name":"parity.label_id","datatype":"INT64","shape":[2],"data":[0,1]},)"
      R"({"name":"parity.probability","datatype":"FP64","shape":[2],"data":[0.75,0.25]},)"
      R"({"name":"size.label","datatype":"BYTES","shape":[2],"data":["l","m"]},)"
      R"({"name":"size.label_id","datatype":"INT64","shape":[2],"data":[2,1]},)"
      R"({"name":"size.probability","datatype":"FP64","shape":[2],"data":[0.5,0.125]}]})");
}

TEST(InferRequest, AnOutputOfOneHeadCanBeAskedFor) {
  const InferRequest request = read_infer_request(
      R"({"inputs":[{"name":"text","shape":[1],"datatype":"BYTES","data":["a"]}],"outputs":[{"name":"size.label"}]})",
      form_of_two_heads());
  EXPECT_EQ(infer_answer("m", form_of_two_heads(), request, {{.values = {0, 0.75, 2, 0.5}}}),
            R"({"model_name":"m","outputs":[{"name":"size.label","datatype":"BYTES","shape":[1],"data":["l"]}]})");
}

TEST(InferRequest, AnswersOfLanguageModelsStandOneHeadAfterTheOther) {
  RequestForm form = test::language_form();
  form.heads = {{.name = "a"}, {.name = "b"}};
  EXPECT_EQ(infer_answer("m", form, {.rows = {{}}, .outputs = {"b.num_correct", "b.loss", "a.loss"}},
                         {{.values = {0.5, 9, 4, 0.25, 9, 6}}}),
            R"({"model_name":"m","outputs":[{"name":"b.num_correct","datatype":"INT64","shape":[1],"data":[6]},)"
            R"({"name":"b.loss","datatype":"FP64","shape":[1],"data":[0.25]},)"
            R"({"name":"a.loss","datatype":"FP64","shape":[1],"data":[0.5]}]})");
}

TEST(InferRequest, DoublesKeepEveryBit) {
  const double probability = std::nextafter(0.1, 1);
  const InferRequest request = {.rows = {{}}, .outputs = {"probability"}};
  const auto json =
      nlohmann::json::parse(infer_answer("m", test::text_form(), request, {{.values = {0, probability}}}));
  EXPECT_EQ(json["outputs"][0]["data"][0].get<double>(), probability);
}

TEST(InferRequest, AnEmulatedDeviceAnswersWithoutOutputs) {
  const InferRequest request = {.id = "7", .rows = {{}}, .outputs = {"label"}};
  EXPECT_EQ(infer_answer("m", test::text_form(), request, {{}}), R"({"model_name":"m","id":"7","outputs":[]})");
}

TEST(InferRequest, ALabelThatTheModelDoesNotHaveIsOurError) {
  EXPECT_THROW(infer_answer("m", test::text_form(), {.rows = {{}}}, {{.values = {2, 0.5}}}), InternalError);
}

struct Wrong {
  const char* body;
  const char* sentence;
};

void expect_refused(const std::vector<Wrong>& cases, const RequestForm& form) {
  for (const auto& [body, sentence] : cases) {
    SCOPED_TRACE(body);
    try {
      read_infer_request(body, form);
      ADD_FAILURE() << "is taken; expected: " << sentence;
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), HasSubstr(sentence));
    }
  }
}

TEST(InferRequest, InvalidRequestsAreRefused) {
  expect_refused(
      {{"", "request: line 1, column 1: is not valid JSON"},
       {"{\"inputs\":[NaN]}", "request: line 1, column 12: is not valid JSON"},
       {"{} {}", "request: line 1, column 4: is not valid JSON"},
       {"\"\xff\"", "request: line 1, column 2: is not valid JSON"},
       {"[1e999]", "request: line 1, column 2: is not valid JSON: 1e999 is more than a double can hold"},
       {"[]", "request: must be an object, is []"},
       {"{}", "request: has no field \"inputs\""},
       {R"({"inputs":[],"input":1})",
        "request: has the unknown field \"input\"; known: inputs, id, parameters, outputs"},
       {R"({"id":7,"inputs":[]})", "request: id: must be a string, is 7"},
       {R"({"inputs":{}})", "request: inputs: must be a list, is {}"},
       {R"({"inputs":[]})", "request: inputs: must be one tensor, whose rows are answered one by one, is 0 tensors"},
       {R"({"inputs":[{},{}]})", "is 2 tensors"},
       {R"({"inputs":[7]})", "request: inputs[0]: must be an object, is 7"},
       {R"({"parameters":[],"inputs":[]})", "request: parameters: must be an object, is []"},
       {R"({"parameters":{"binary_data_output":true},"inputs":[]})",
        "request: parameters.binary_data_output: must not be given: tensors are JSON here, is true"},
       {R"({"inputs":[],"outputs":[{"name":"logits"}]})",
        R"(request: outputs[0].name: must be one of "label", "label_id", "probability", is "logits")"},
       {R"({"inputs":[],"outputs":[{"name":"label"},{"name":"label"}]})",
        R"(request: outputs[1].name: must be asked for once, is "label" again)"},
       {R"({"inputs":[],"outputs":[{"name":"label","parameters":{"binary_data":true}}]})",
        "request: outputs[0].parameters.binary_data: must not be given"},
       {R"({"inputs":[],"outputs":["label"]})", "request: outputs[0]: must be an object, is \"label\""}},
      test::text_form());
  const std::string deep = std::string(101, '[') + std::string(101, ']');
  expect_refused({{deep.c_str(), "request: must nest its lists and objects at most 100 deep"}}, test::text_form());
}

std::string tensor(std::string_view fields) { return R"({"inputs":[{)" + std::string(fields) + "}]}"; }

TEST(InferRequest, WrongTensorsOfTextsAreRefused) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {R"("name":"text","shape":[1],"datatype":"BYTES")", R"(request: inputs[0]: has no field "data")"},
      {R"("name":"mask","shape":[1],"datatype":"BYTES","data":[""])",
       R"(request: inputs[0].name: must be one of "text", "input_ids", is "mask")"},
      {R"("name":"text","shape":[1],"datatype":"FP32","data":[""])",
       R"(request: inputs[0].datatype: must be BYTES, is "FP32")"},
      {R"("name":"text","shape":[2],"datatype":"BYTES","data":[""])",
       "request: inputs[0].data: must be a list of 2 as the shape says, is one of 1"},
      {R"("name":"text","shape":[1,1],"datatype":"BYTES","data":[""])",
       "request: inputs[0].shape: must be [rows], of 1 to 64 rows, is [1,1]"},
      {R"("name":"text","shape":[0],"datatype":"BYTES","data":[])", "of 1 to 64 rows, is [0]"},
      {R"("name":"text","shape":[65],"datatype":"BYTES","data":[])", "of 1 to 64 rows, is [65]"},
      {R"("name":"text","shape":[-1],"datatype":"BYTES","data":[])", "of 1 to 64 rows, is [-1]"},
      {R"("name":"text","shape":[1.0],"datatype":"BYTES","data":[])", "of 1 to 64 rows, is [1.0]"},
      {R"("name":"text","shape":1,"datatype":"BYTES","data":[])", "of 1 to 64 rows, is 1"},
      {R"("name":"text","shape":[1],"datatype":"BYTES","data":"a")", "must be a list of 1 as the shape says, is \"a\""},
      {R"("name":"text","shape":[2],"datatype":"BYTES","data":["a",3])",
       "request: inputs[0].data[1]: must be a string, is 3"},
      {R"("name":"text","shape":[1],"datatype":"BYTES","data":["a"],"parameters":{"binary_data_size":3})",
       "request: inputs[0].parameters.binary_data_size: must not be given"},
      {R"("name":"input_ids","shape":[1,2],"datatype":"UINT8","data":[1,2])", R"(must be INT64 or INT32, is "UINT8")"},
      {R"("name":"input_ids","shape":[1,11],"datatype":"INT64","data":[])",
       "request: inputs[0].shape: must be [rows, tokens] with 1 to 10 tokens, of 1 to 64 rows, is [1,11]"},
      {R"("name":"input_ids","shape":[1,0],"datatype":"INT64","data":[])", "is [1,0]"},
      {R"("name":"input_ids","shape":[4294967296,4294967296],"datatype":"INT64","data":[])", "is [4294967296,"},
      {R"("name":"input_ids","shape":[1,18446744073709551615],"datatype":"INT64","data":[])", "is [1,18446744073"},
      {R"("name":"input_ids","shape":[1,2],"datatype":"INT64","data":[1,300])",
       "request: inputs[0].data[1]: must be <= 299, is 300"},
      {R"("name":"input_ids","shape":[1,2],"datatype":"INT64","data":[-1,3])",
       "inputs[0].data[0]: must be >= 0, is -1"},
      {R"("name":"input_ids","shape":[1,1],"datatype":"INT64","data":[18446744073709551615])", "must be <= 299"},
      {R"("name":"input_ids","shape":[1,2],"datatype":"INT64","data":[1,2.5])", "must be an integer, is 2.5"},
      {R"("name":"input_ids","shape":[2,2],"datatype":"INT64","data":[[1,2],[3]])",
       "request: inputs[0].data[1]: must be a list of 2 as the shape says, is one of 1"},
      {R"("name":"input_ids","shape":[2,2],"datatype":"INT64","data":[[1,2],3])",
       "request: inputs[0].data[1]: must be a list of 2 as the shape says, is 3"},
      {R"("name":"input_ids","shape":[2,2],"datatype":"INT64","data":[1,2,3])", "must be a list of 4"}};
  for (const auto& [fields, sentence] : cases) {
    const std::string body = tensor(fields);
    expect_refused({{body.c_str(), sentence}}, test::text_form());
  }
}

TEST(InferRequest, WrongTensorsOfPicturesAreRefused) {
  const std::string start = R"("name":"pixel_values","datatype":"FP32",)";
  const std::vector<std::pair<std::string, const char*>> cases = {
      {R"("shape":[1,3,2,3],"data":[])", "inputs[0].shape: must be [rows, 3, 2, 2], of 1 to 64 rows, is [1,3,2,3]"},
      {R"("shape":[1,3,2,2],"data":[1,2,3,4,5,6,7,8,9,10,11])", "must be a list of 12 as the shape says, is one of 11"},
      {R"("shape":[1,3,2,2],"data":[1e39,2,3,4,5,6,7,8,9,10,11,12])",
       "request: inputs[0].data[0]: must be a number that FP32 has, is 1e+39"},
      {R"("shape":[1,3,2,2],"data":["NaN",2,3,4,5,6,7,8,9,10,11,12])", "must be a number, is \"NaN\""},
      {R"("shape":[1,3,2,2],"data":[[[[1,2],[3,4]],[[5,6],[7,8]],[[9,10],[11,null]]]])",
       "request: inputs[0].data[0][2][1][1]: must be a number, is null"}};
  for (const auto& [fields, sentence] : cases) {
    const std::string body = tensor(start + fields);
    expect_refused({{body.c_str(), sentence}}, test::picture_form());
  }
}

TEST(InferRequest, AModelWithoutATokenizerTakesNoTexts) {
  RequestForm form = test::text_form();
  form.tokens_of = nullptr;
  expect_refused({{R"({"inputs":[{"name":"text","shape":[1],"datatype":"BYTES","data":["a"]}]})",
                   R"(request: inputs[0].name: must be one of "input_ids", is "text")"}},
                 form);
}

TEST(InferRequest, ALanguageModelNeedsATokenToPredict) {
  expect_refused({{R"({"inputs":[{"name":"input_ids","shape":[1,1],"datatype":"INT64","data":[7]}]})",
                   "must be [rows, tokens] with 2 to 10 tokens"}},
                 test::language_form());
}

TEST(InferRequest, IsRefusedWhileItIsParsedWhereItHasMoreThanAnyNeeds) {
  const auto why_not = [](const std::string& body) -> std::string {
    try {
      read_infer_request(body, test::text_form());
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  std::string keys, lists;
  for (std::size_t i = 0; i <= kMaxKeys; ++i) keys += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  for (int i = 0; i < 100'000; ++i) lists += "[],";
  // The value that is refused comes before the text that is not JSON.
  EXPECT_THAT(why_not(R"({"parameters":{)" + keys + "!"), HasSubstr("must have at most 1024 keys"));
  EXPECT_THAT(why_not(R"({"parameters":[)" + lists + "!"), HasSubstr("values, more than 64 rows"));
}

TEST(InferRequest, ReadingEndsIfTheCallbackThrows) {
  std::string zeros = "0";
  for (int i = 0; i < 5000; ++i) zeros += ",0";
  const auto leave = [] { throw RuntimeFailure("the client has left"); };
  EXPECT_THROW(read_infer_request(R"({"parameters":[)" + zeros + "]}", test::text_form(), leave), RuntimeFailure);
}

}  // namespace
}  // namespace frostpipe
