// Requests that any client may send to a server.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "serving/server/http/infer_request.h"
#include "tests/fuzz/mutations.h"
#include "tests/serving/server/http/fake_models.h"

namespace frostpipe {
namespace {

using test::fuzz;

void fuzz_requests(const std::string& valid, const RequestForm& form) {
  fuzz(valid, [&](const std::string& body) {
    const InferRequest request = read_infer_request(body, form);
    if (request.rows.empty() || request.rows.size() > kMaxRows) throw std::logic_error("as many rows as there may be");
    std::vector<RequestAnswer> answers;
    for (const RequestInput& row : request.rows) answers.push_back(test::plain_answer(form.task, row));
    infer_answer("m", form, request, answers);
  });
}

TEST(Fuzz, RequestsOfTokens) {
  fuzz_requests(
      R"({"id":"42","parameters":{"priority":3},"inputs":[{"name":"input_ids","shape":[2,3],"datatype":"INT64",
      "parameters":{},"data":[1,7,2,1,8,299]}],
      "outputs":[{"name":"probability"},{"name":"label","parameters":{"a":1}}]})",
      test::text_form());
}

TEST(Fuzz, RequestsOfTexts) {
  fuzz_requests(R"({"inputs":[{"name":"text","shape":[2],"datatype":"BYTES","data":["ab","\u00e9ab"]}]})",
                test::text_form());
}

TEST(Fuzz, RequestsOfPictures) {
  fuzz_requests(
      R"({"inputs":[{"name":"pixel_values","shape":[1,3,2,2],"datatype":"FP32",
      "data":[[[[0.5,-1],[2e-3,3]],[[4,5],[6,7]],[[8,9],[10,11]]]]}]})",
      test::picture_form());
}

}  // namespace
}  // namespace frostpipe
