#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serving/server/served_models.h"

namespace frostpipe::test {

/// Tokens 1, one per byte, and 2, at most ten.
inline std::vector<std::int32_t> byte_tokens(std::string_view text) {
  std::vector<std::int32_t> tokens = {1};
  for (const char c : text.substr(0, 8)) tokens.push_back(static_cast<unsigned char>(c));
  tokens.push_back(2);
  return tokens;
}

inline RequestForm text_form() {
  return {.task = ServedTask::text_classification,
          .heads = {{.label_names = {"even", "odd"}}},
          .max_tokens = 10,
          .vocabulary_size = 300,
          .tokens_of = byte_tokens,
          .is_cut = [](std::string_view text) { return text.size() > 8; }};
}

inline RequestForm picture_form() {
  return {.task = ServedTask::image_classification, .heads = {{.label_names = {"dark", "bright"}}}, .image_size = 2};
}

inline RequestForm language_form() {
  RequestForm form = text_form();
  form.task = ServedTask::language_modeling;
  form.heads = {HeadForm{}};
  return form;
}

/// Answers by definition. Texts: whether the number of tokens is odd, with probability 1 / tokens. Pictures: whether
/// the first pixel is above 0, with that pixel as probability. Language models: a loss of 1 / tokens, tokens - 1
/// predicted tokens, half of them right.
inline RequestAnswer plain_answer(ServedTask task, const RequestInput& input) {
  const auto tokens = static_cast<double>(input.tokens.size());
  if (task == ServedTask::image_classification)
    return {.values = {input.pixels->at(0) > 0 ? 1.0 : 0.0, input.pixels->at(0)}};
  if (task == ServedTask::language_modeling)
    return {.values = {1 / tokens, tokens - 1, static_cast<double>((input.tokens.size() - 1) / 2)}};
  return {.values = {static_cast<double>(input.tokens.size() % 2), 1 / tokens}};
}

/// Answers at once, or as configured. Fields are set before the first request.
struct FakeModels final : ServedModels {
  std::map<std::string, RequestForm, std::less<>> forms = {
      {"a/b", text_form()}, {"pictures", picture_form()}, {"texts", text_form()}, {"words", language_form()}};
  /// Called with a model's input and the number of earlier requests.
  std::function<std::future<RequestAnswer>(const RequestInput&, int)> answer_to;
  ModelCounters counters;
  std::vector<WorkerState> worker_states;
  std::atomic<bool> are_ready = true;
  int most_rows = kMaxRequestsAtOnce;
  std::atomic<int> num_asked = 0;

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, form] : forms) names.push_back(name);
    return names;
  }
  const RequestForm& form_of(std::string_view model) const override { return forms.find(model)->second; }
  std::future<RequestAnswer> ask(std::string_view model, RequestInput input) override {
    const int before = num_asked++;
    if (answer_to) return answer_to(input, before);
    return now(plain_answer(form_of(model).task, input));
  }
  bool is_ready(std::string_view) const override { return are_ready; }
  int max_requests_at_once(std::string_view) const override { return most_rows; }
  ModelCounters counters_of(std::string_view) const override { return counters; }
  std::vector<WorkerState> workers() const override { return worker_states; }

  static std::future<RequestAnswer> now(RequestAnswer answer) {
    std::promise<RequestAnswer> promise;
    promise.set_value(std::move(answer));
    return promise.get_future();
  }
};

}  // namespace frostpipe::test
