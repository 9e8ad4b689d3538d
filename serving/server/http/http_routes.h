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

/// {"error": "..."}
HttpAnswer http_error(int status, std::string_view why);
/// 503, to be tried again in a second.
HttpAnswer busy_answer(std::string_view why);

/// What is behind each path, apart from the protocol that brings it. Any thread may call any function.
class HttpRoutes {
 public:
  explicit HttpRoutes(ServedModels& models);

  /// The model whose "/infer" this path is, if it is served; else empty.
  std::string inferred_model(std::string_view path) const;
  /// The answer to a request without a body: where a path is for other methods 405, and where there is none 404. A HEAD
  /// is answered as a GET.
  HttpAnswer answer(std::string_view method, std::string_view path) const;
  /// Asks for all rows, and waits for their answers; the body is freed before. Requires a model that is served. While
  /// the body is read, or waits for that, `is_wanted` is asked now and then: where it says no, and after
  /// kLongestReading, the answer is 503.
  HttpAnswer infer(const std::string& model, std::string body, const std::function<bool()>& is_wanted);
  static constexpr std::chrono::seconds kLongestReading{5};
  /// Bodies of up to so many bytes are read at once, without waiting for longer ones.
  static constexpr std::size_t kShortBody = 64 << 10;

 private:
  bool is_served(std::string_view model) const;
  HttpAnswer model_answer(std::string_view model_path) const;
  InferRequest read(std::string body, const RequestForm& form, const std::function<bool()>& is_wanted);

  ServedModels& models_;
  /// The tree of a body takes several times its bytes, and making it a core: there are as many as there are cores.
  std::counting_semaphore<> readers_;
};

}  // namespace frostpipe
