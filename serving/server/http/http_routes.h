#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <semaphore>
#include <string>
#include <string_view>

#include "serving/server/http/infer_request.h"
#include "serving/server/served_models.h"

namespace frostpipe {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers;
};

/// Returns {"error": "..."}.
HttpAnswer http_error(int status, std::string_view why);
/// Returns 503 with a Retry-After of a second.
HttpAnswer busy_answer(std::string_view why);

/// The handlers of all paths, independent of the protocol. Thread-safe.
class HttpRoutes {
 public:
  explicit HttpRoutes(ServedModels& models);

  /// Returns NAME if the path is "/v2/models/NAME/infer" of a served model; else "".
  std::string inferred_model(std::string_view path) const;
  /// Answers a request without a body: 405 for a path that needs another method, and 404 for an unknown path. HEAD is
  /// answered like GET.
  HttpAnswer answer(std::string_view method, std::string_view path) const;
  /// Parses the body, frees it, submits all rows and waits for their answers. The model must be served. While the body
  /// is parsed, or waits to be parsed, `is_wanted` is called repeatedly: if it returns false, or after kLongestReading,
  /// the answer is 503.
  HttpAnswer infer(const std::string& model, std::string body, const std::function<bool()>& is_wanted);
  static constexpr std::chrono::seconds kLongestReading{5};
  /// Bodies up to this size are parsed at once, without waiting for longer ones.
  static constexpr std::size_t kShortBody = 64 << 10;

 private:
  bool is_served(std::string_view model) const;
  HttpAnswer model_answer(std::string_view model_path) const;
  InferRequest read(std::string body, const RequestForm& form, const std::function<bool()>& is_wanted);

  ServedModels& models_;
  /// Parsing a body occupies a core, and memory of several times its bytes, so as many bodies are parsed at once as
  /// there are cores.
  std::counting_semaphore<> readers_;
};

}  // namespace frostpipe
