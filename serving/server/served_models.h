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

// What stands between those who ask (HTTP, generated load) and those who compute: models by name, questions to them and
// their answers.

namespace frostpipe {

/// One request: of a text its tokens, special ones included; of a picture its pixels, [channels, height, width],
/// normalised.
struct RequestInput {
  std::vector<std::int32_t> tokens;
  /// None of a text. Shared: they are copied once, to where they are computed.
  std::shared_ptr<const std::vector<float>> pixels;
};

/// What became of a request.
struct RequestAnswer {
  enum class Kind {
    answered,
    dropped,  // it could not be answered in time: there is too much load
    failed,   // its worker was lost, or the computation failed
  };
  Kind kind = Kind::answered;
  /// Answered: of a classifier the label's number and its probability; of a language model the mean loss of its
  /// predicted tokens, their number, and how many of them it would have said itself; of several heads one after the
  /// other. Empty of emulated devices.
  std::vector<double> values;
  std::string why;  // dropped, failed
};

enum class ServedTask { text_classification, image_classification, language_modeling };

/// One of those that answer every request to a model.
struct HeadForm {
  std::string name;                      // empty where it is the only one
  std::vector<std::string> label_names;  // of classifiers
};

/// How requests to a model look, and their answers.
struct RequestForm {
  ServedTask task = ServedTask::text_classification;
  std::vector<HeadForm> heads = {HeadForm{}};
  int most_tokens = 0;  // of a text: as many as the plan has room for
  std::int64_t vocabulary_size = 0;
  int image_size = 0;  // of a picture with 3 channels
  /// A text as tokens, at most most_tokens; none where the model takes pictures, or its folder has no tokenizer. Any
  /// thread may call it.
  std::function<std::vector<std::int32_t>(std::string_view)> tokens_of;
};

/// Since the server began, over all plans.
struct ModelCounters {
  std::int64_t requests = 0;                    // that have come
  std::int64_t in_time = 0, late = 0;           // answered
  std::map<std::string, std::int64_t> dropped;  // by reason
  std::int64_t failed = 0;
  std::int64_t waiting = 0, computing = 0;  // now
  std::int64_t batches = 0, requests_in_batches = 0;
  /// Of answers, latencies up to kLatencyBounds[i]; the last entry: all.
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

/// Models that are served. Any thread may call any function.
class ServedModels {
 public:
  virtual ~ServedModels() = default;
  virtual std::vector<std::string> names() const = 0;
  /// Requires one of names().
  virtual const RequestForm& form_of(std::string_view model) const = 0;
  /// The request arrives now. Requires one of names() and an input of its form. The future is always fulfilled.
  virtual std::future<RequestAnswer> ask(std::string_view model, RequestInput input) = 0;
  /// All workers of its newest plan have loaded their weights, but for those that are started again after a loss.
  virtual bool is_ready(std::string_view model) const = 0;
  virtual ModelCounters counters_of(std::string_view model) const = 0;
  virtual std::vector<WorkerState> workers() const = 0;
};

}  // namespace frostpipe
