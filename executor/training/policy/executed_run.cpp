#include "executor/training/policy/executed_run.h"

#include <algorithm>

namespace frostpipe {

void fit_world(TrainingPlan& executed) {
  for (const Phase& phase : executed.phases) {
    for (const int rank : phase.layout.placement) executed.world_size = std::max(executed.world_size, rank + 1);
    executed.world_size = std::max(executed.world_size, num_ranks(phase.layout));
  }
  for (Phase& phase : executed.phases) {
    if (static_cast<int>(phase.predicted.peak_memory_bytes.size()) != executed.world_size)
      phase.predicted.peak_memory_bytes.clear();
  }
}

double samples_trained(int num_steps, int steps_per_epoch, int num_train_samples, int global_batch_size) {
  const int begun = num_steps % steps_per_epoch;  // steps of the current epoch, whose short mini-batch is the last one
  const double per_epoch =
      std::min<double>(num_train_samples, static_cast<double>(steps_per_epoch) * global_batch_size);
  return static_cast<double>(num_steps / steps_per_epoch) * per_epoch + static_cast<double>(begun) * global_batch_size;
}

}  // namespace frostpipe
