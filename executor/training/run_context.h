#pragma once
#include <memory>

#include "executor/device/device.h"
#include "executor/execute.h"
#include "executor/training/training_task.h"

namespace frostpipe {

/// What does not change in this process while the run lasts. Equal on all ranks but for the device.
struct RunContext {
  /// `options` and `callbacks` must outlive it. `local_rank`: which GPU of its machine this process takes.
  RunContext(const TrainOptions& options, const TrainCallbacks& callbacks, const InputsFound& inputs, int local_rank);

  int num_layers() const { return static_cast<int>(model.layers.size()); }
  /// Part of the run that is done after this many steps.
  double fraction(int steps) const { return static_cast<double>(steps) / num_steps; }
  /// Whether there is an evaluation then: where there is test data, after each epoch and at the run's end, which may be
  /// in the middle of one.
  bool is_tested_after(int steps) const {
    return !dataset.test_by_length.empty() && (steps % steps_per_epoch == 0 || steps == num_steps);
  }

  const Nanoseconds started_ns;  // when this process began with the run, on the steady clock
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
