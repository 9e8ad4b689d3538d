#pragma once
#include <atomic>
#include <thread>

#include "cli/serving/serving_load.h"
#include "executor/serving/served_models.h"

namespace frostpipe {

/// A thread that asks the models as a load says, from now on. What it asks is random: tokens of the vocabulary, as many
/// as the model takes, or pixels.
class GeneratedLoad {
 public:
  /// Both outlive it. `load.arrivals` are of models.names().
  GeneratedLoad(ServedModels& models, const ServingLoad& load);
  /// Asks no more.
  ~GeneratedLoad();
  GeneratedLoad(const GeneratedLoad&) = delete;
  GeneratedLoad& operator=(const GeneratedLoad&) = delete;

  /// The last request has been asked, and the load's window is over.
  bool has_ended() const { return has_ended_; }

 private:
  void run();

  ServedModels& models_;
  const ServingLoad& load_;
  std::atomic<bool> stops_ = false, has_ended_ = false;
  std::thread thread_;
};

}  // namespace frostpipe
