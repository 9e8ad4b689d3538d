#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// The interface between clients (HTTP, generated load) and workers: models by name, requests and answers.

namespace frostpipe {

/// The input of one request: the tokens of a text, with special tokens, or the normalized pixels of a picture,
/// [channels, height, width].
struct RequestInput {
  std::vector<std::int32_t> tokens;
  /// Null for a text. The pixels are shared, so that they are copied only once, to the batch buffer.
  std::shared_ptr<const std::vector<float>> pixels;
  bool is_cut = false;  // the text had more tokens
};

/// The result of a request.
struct RequestAnswer {
  enum class Kind {
    answered,
    dropped,  // it could not be answered in time, because the load is too high
    failed,   // its worker was lost, or the computation failed
  };
  Kind kind = Kind::answered;
  /// If answered: for a classifier the label's number and its probability; for a language model the mean loss of the
  /// predicted tokens, their number, and the number of correct predictions; with several heads, the values of one head
  /// after another. Empty for emulated devices.
  std::vector<double> values;
  std::string why;  // reason for `dropped` or `failed`
};

enum class ServedTask { text_classification, image_classification, language_modeling };

/// One of the heads, all of which answer every request to the model.
struct HeadForm {
  std::string name;                      // "" if it is the only one
  std::vector<std::string> label_names;  // of classifiers
};

/// The form of requests to a model, and of their answers.
struct RequestForm {
  ServedTask task = ServedTask::text_classification;
  std::vector<HeadForm> heads = {HeadForm{}};
  int max_tokens = 0;  // largest number of tokens of a text, from the plan
  std::int64_t vocabulary_size = 0;
  int image_size = 0;  // height and width of a picture with 3 channels
  /// Tokenizes a text to at most max_tokens tokens. Empty if the model takes pictures or its folder has no tokenizer.
  /// Thread-safe.
  std::function<std::vector<std::int32_t>(std::string_view)> tokens_of;
  /// True if the text has more than max_tokens tokens. Set if tokens_of is; thread-safe.
  std::function<bool(std::string_view)> is_cut;
  /// Drops tokens at the end of a text that the model is not to see: padding, for a classifier that reads the last
  /// token. Empty if there are none; thread-safe.
  std::function<void(std::vector<std::int32_t>&)> drop_padding;
};

/// Counts since the server began, over all plans.
struct ModelCounters {
  std::int64_t requests = 0;                    // received
  std::int64_t in_time = 0, late = 0;           // answered
  std::map<std::string, std::int64_t> dropped;  // by reason
  std::int64_t failed = 0;
  std::int64_t cut = 0;                     // received texts that had more tokens than the model is planned for
  std::int64_t waiting = 0, computing = 0;  // at present
  std::int64_t batches = 0, requests_in_batches = 0;
  /// Cumulative histogram: answers with latency up to kLatencyBoundsSeconds[i]; the last entry counts all.
  std::vector<std::int64_t> latency_counts;
  Nanoseconds latency_sum_ns = 0;
};

inline constexpr double kLatencyBoundsSeconds[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

struct WorkerState {
  std::string model, device_class;
  int pipeline = 0, partition = 0, virtual_device = 0;
  bool is_ready = false;
  Nanoseconds busy_ns = 0;
};

/// The largest number of requests that a client can make at once.
inline constexpr int kMaxRequestsAtOnce = 64;

/// The served models. Thread-safe.
class ServedModels {
 public:
  virtual ~ServedModels() = default;
  virtual std::vector<std::string> names() const = 0;
  /// `model` must be one of names().
  virtual const RequestForm& form_of(std::string_view model) const = 0;
  /// Submits a request, which arrives now. `model` must be one of names(), and the input must have its form. The future
  /// always becomes ready.
  virtual std::future<RequestAnswer> ask(std::string_view model, RequestInput input) = 0;
  /// True if some pipeline of its newest loaded plan has a worker with loaded weights for each of its partitions.
  virtual bool is_ready(std::string_view model) const = 0;
  /// The largest number of requests, 1 to kMaxRequestsAtOnce, that can all be answered within the objective by the plan
  /// if they arrive at once while the server is idle. Another plan may have another number.
  virtual int max_requests_at_once(std::string_view model) const = 0;
  virtual ModelCounters counters_of(std::string_view model) const = 0;
  virtual std::vector<WorkerState> workers() const = 0;
};

}  // namespace frostpipe
