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

/// A thread that asks the models as a load says, from now on. What it asks is random: tokens of the vocabulary, as many
/// as the model takes, or pixels; a few inputs in turn, for making them takes time that workers need. Asks no more once
/// it is destroyed.
class GeneratedLoad {
 public:
  /// Both outlive it. `load.arrivals` are of models.names().
  GeneratedLoad(ServedModels& models, const ServingLoad& load);
  /// The last request has been asked, and the load's window is over.
  bool has_ended() const { return has_ended_; }

 private:
  void run(const std::stop_token& stop);
  bool sleep_until(Nanoseconds at_ns, const std::stop_token& stop);

  ServedModels& models_;
  const std::vector<std::vector<RequestInput>> inputs_;  // by model, in the order of their names
  const ServingLoad& load_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;  // of nothing: a stop ends the wait
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace frostpipe
