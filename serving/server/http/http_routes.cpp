#include "serving/server/http/http_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "serving/server/http/infer_request.h"
#include "serving/server/http/metrics.h"
#include "serving/server/http/tensor_forms.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModels = "/v2/models/";
constexpr std::string_view kInfer = "/infer", kReady = "/ready", kVersions = "/versions";

HttpAnswer answer_of(const Json& json, int status = 200) {
  return {.status = status, .body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpAnswer ready_answer(Json json, bool is_ready) {
  json["ready"] = is_ready;
  return answer_of(json, is_ready ? 200 : 503);
}

Json tensors_json(const std::vector<TensorForm>& tensors) {
  Json list = Json::array();
  for (const TensorForm& tensor : tensors)
    list.push_back({{"name", tensor.name}, {"datatype", tensor.datatype}, {"shape", tensor.shape}});
  return list;
}

/// Returns "NAME" for "NAME/infer"; "" if the path does not have this ending.
std::string_view before(std::string_view path, std::string_view ending) {
  return path.ends_with(ending) ? path.substr(0, path.size() - ending.size()) : std::string_view();
}

/// Thrown to stop reading a request.
struct NotRead {
  std::string why;
};

class Held {
 public:
  /// Acquires the semaphore. Calls `look` ten times a second while it waits; `look` may throw to stop.
  Held(std::counting_semaphore<>& semaphore, const std::function<void()>& look) : semaphore_(semaphore) {
    while (!semaphore_.try_acquire_for(std::chrono::milliseconds(100))) look();
  }
  ~Held() { semaphore_.release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::counting_semaphore<>& semaphore_;
};

/// Describes the first row without an answer; failed rows precede dropped ones.
HttpAnswer refusal(const std::vector<RequestAnswer>& answers) {
  const auto row_of = [&](RequestAnswer::Kind kind) {
    return std::find_if(answers.begin(), answers.end(), [&](const RequestAnswer& one) { return one.kind == kind; });
  };
  const auto sentence = [&](auto row, std::string_view what) {
    return fmt::format("row {} {}: {}", row - answers.begin(), what, row->why);
  };
  if (const auto row = row_of(RequestAnswer::Kind::failed); row != answers.end())
    return http_error(500, sentence(row, "failed"));
  return busy_answer(sentence(row_of(RequestAnswer::Kind::dropped), "was dropped"));
}

}  // namespace

HttpAnswer http_error(int status, std::string_view why) { return answer_of({{"error", why}}, status); }

HttpAnswer busy_answer(std::string_view why) {
  HttpAnswer answer = http_error(503, why);
  answer.headers["Retry-After"] = "1";
  return answer;
}

HttpRoutes::HttpRoutes(ServedModels& models)
    : models_(models), readers_(std::max<std::ptrdiff_t>(1, std::thread::hardware_concurrency())) {}

bool HttpRoutes::is_served(std::string_view model) const {
  const std::vector<std::string> names = models_.names();
  return std::find(names.begin(), names.end(), model) != names.end();
}

std::string HttpRoutes::inferred_model(std::string_view path) const {
  if (!path.starts_with(kModels)) return "";
  const std::string_view model = before(path.substr(kModels.size()), kInfer);
  return !model.empty() && is_served(model) ? std::string(model) : "";
}

HttpAnswer HttpRoutes::model_answer(std::string_view model_path) const {
  if (is_served(model_path)) {
    const RequestForm& form = models_.form_of(model_path);
    Json json = {{"name", model_path},
                 {"platform", "frostpipe"},
                 {"inputs", tensors_json(input_tensors(form))},
                 {"outputs", tensors_json(output_tensors(form))}};
    json["parameters"] = {{"max_rows", models_.max_requests_at_once(model_path)}};
    if (form.image_size == 0) json["parameters"]["max_tokens"] = form.max_tokens;
    return answer_of(json);
  }
  if (const std::string_view model = before(model_path, kReady); is_served(model))
    return ready_answer({{"name", model}}, models_.is_ready(model));
  if (const auto end = model_path.find(kVersions); is_served(model_path.substr(0, end)))
    return http_error(
        404, fmt::format("models have no versions here; ask {}{} without one", kModels, model_path.substr(0, end)));
  for (const std::string_view ending : {kInfer, kReady})
    if (model_path.ends_with(ending)) model_path = before(model_path, ending);
  return http_error(404, fmt::format("there is no model {}; this server serves {}", in_quotes(model_path),
                                     in_quotes(models_.names())));
}

HttpAnswer HttpRoutes::answer(std::string_view method, std::string_view path) const {
  HttpAnswer answer;
  if (!inferred_model(path).empty()) {
    answer = http_error(405, fmt::format("{} takes only POST, with a JSON body", path));
    answer.headers["Allow"] = "POST";
    return answer;
  }
  if (path == "/v2") {
    answer = answer_of({{"name", "frostpipe"},
                        {"version", FROSTPIPE_VERSION},
                        {"extensions", Json::array()},
                        {"models", models_.names()}});
  } else if (path == "/v2/health/live") {
    answer = answer_of({{"live", true}});
  } else if (path == "/v2/health/ready") {
    const std::vector<std::string> names = models_.names();
    answer = ready_answer(Json::object(), std::all_of(names.begin(), names.end(),
                                                      [&](const std::string& name) { return models_.is_ready(name); }));
  } else if (path == "/metrics") {
    answer = {.body = metrics_text(models_), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
  } else if (path.starts_with(kModels)) {
    answer = model_answer(path.substr(kModels.size()));
  } else {
    answer = http_error(404, fmt::format("there is no {} here", in_quotes(path)));
  }
  if (answer.status != 404 && method != "GET" && method != "HEAD") {
    answer = http_error(405, fmt::format("{} takes only GET and HEAD", path));
    answer.headers["Allow"] = "GET, HEAD";
  }
  return answer;
}

InferRequest HttpRoutes::read(std::string body, const RequestForm& form, const std::function<bool()>& is_wanted) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestReading;
  const std::function<void()> look = [&] {
    if (!is_wanted()) throw NotRead{"the client has left, or the server ends"};
    if (std::chrono::steady_clock::now() > deadline)
      throw NotRead{fmt::format("the body was not read within {} s: there is too much load", kLongestReading.count())};
  };
  if (body.size() <= kShortBody) return read_infer_request(body, form, look);
  const Held reader(readers_, look);
  return read_infer_request(body, form, look);
}

HttpAnswer HttpRoutes::infer(const std::string& model, std::string body, const std::function<bool()>& is_wanted) {
  const RequestForm& form = models_.form_of(model);
  InferRequest request;
  try {
    request = read(std::move(body), form, is_wanted);
  } catch (const InvalidInput& error) {
    return http_error(400, error.what());
  } catch (const NotRead& reading) {
    return busy_answer(reading.why);
  }
  if (const int most = models_.max_requests_at_once(model); std::cmp_greater(request.rows.size(), most))
    return http_error(400, fmt::format("request: inputs[0]: must have at most {} rows, since more cannot be answered "
                                       "within the objective of {}, has {}; send them in several requests",
                                       most, model, request.rows.size()));
  std::vector<std::future<RequestAnswer>> asked;
  for (RequestInput& row : request.rows) asked.push_back(models_.ask(model, std::move(row)));
  std::vector<RequestAnswer> answers;
  for (std::future<RequestAnswer>& one : asked) answers.push_back(one.get());
  const bool are_all_answered = std::all_of(answers.begin(), answers.end(), [](const RequestAnswer& answer) {
    return answer.kind == RequestAnswer::Kind::answered;
  });
  if (!are_all_answered) return refusal(answers);
  return {.body = infer_answer(model, form, request, answers)};
}

}  // namespace frostpipe
