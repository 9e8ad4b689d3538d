#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/serving/serving_load.h"
#include "serving/server/served_models.h"

namespace frostpipe {

/// A thread that sends requests to the models as a load says. Their inputs are random: tokens of the vocabulary, as
/// many as the model takes, or pixels. It sends a few inputs in turn, because making new ones takes time that workers
/// need. The destructor stops it.
class GeneratedLoad {
 public:
  /// Both arguments must outlive this object. `load.arrivals` is indexed like models.names().
  GeneratedLoad(ServedModels& models, const ServingLoad& load);
  /// Returns whether the last request has been sent and the load's window is over.
  bool has_ended() const { return has_ended_; }

 private:
  void run(const std::stop_token& stop);
  bool sleep_until(Nanoseconds at_ns, const std::stop_token& stop);

  ServedModels& models_;
  const std::vector<std::vector<RequestInput>> inputs_;  // by model, in the order of models.names()
  const ServingLoad& load_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;  // only because stopped_ needs a mutex; it guards no data
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace frostpipe
