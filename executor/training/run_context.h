#pragma once
#include <memory>

#include "executor/device/device.h"
#include "executor/elastic/membership.h"
#include "executor/execute.h"
#include "executor/training/training_task.h"

namespace frostpipe {

/// The constants of a run in this process. They are equal on all ranks, except `started_ns` and `device`.
struct RunContext {
  /// `options` and `callbacks` must outlive it. `first`, the process's first round, selects its GPU.
  RunContext(const TrainOptions& options, const TrainCallbacks& callbacks, const InputsFound& inputs,
             const RendezvousInfo& first);

  int num_layers() const { return static_cast<int>(model.layers.size()); }
  /// Returns the fraction of the run that is done after this many steps.
  double fraction(int steps) const { return static_cast<double>(steps) / num_steps; }
  /// True if there is an evaluation after this many steps: if there is test data, after each epoch and at the run's
  /// end, which may be within an epoch.
  bool is_tested_after(int steps) const {
    return !dataset.test_by_length.empty() && (steps % steps_per_epoch == 0 || steps == num_steps);
  }

  const Nanoseconds started_ns;  // start of the run in this process, on the steady clock
  const TrainOptions& options;
  const TrainCallbacks& callbacks;
  const std::shared_ptr<const TrainingTask> training_task;
  const Dataset& dataset;
  const Model& model;
  const int steps_per_epoch;
  const int num_steps;
  const int threads_per_rank;
  const std::unique_ptr<ComputeDevice> device;
};

}  // namespace frostpipe
