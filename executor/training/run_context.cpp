#include "executor/training/run_context.h"

#include "executor/training/policy/run_clock.h"
#include "executor/training/training_batches.h"

namespace frostpipe {

namespace {

/// Returns the local rank of the process whose GPU this one takes over if it is a spare. Under frostpipe's launcher,
/// which starts all ranks on one host, that is the logical rank.
int taken_over_by(const RendezvousInfo& first) {
  return first.self.watched_by_launcher ? first.logical_ranks.at(first.self.rank) : first.self.local_rank;
}

}  // namespace

RunContext::RunContext(const TrainOptions& options, const TrainCallbacks& callbacks, const InputsFound& inputs,
                       const RendezvousInfo& first)
    : started_ns(steady_now_ns() - inputs.reading_ns),
      options(options),
      callbacks(callbacks),
      training_task(inputs.training_task),
      dataset(training_task->dataset()),
      model(training_task->model()),
      steps_per_epoch(frostpipe::steps_per_epoch(options, dataset)),
      num_steps(options.plan.num_steps),
      threads_per_rank(options.plan.threads_per_rank),
      device(options.emulation ? make_emulated_device(options.emulation->shrink)
                               : make_device(options.device, first.self.local_rank, threads_per_rank,
                                             /*is_alone=*/options.plan.world_size == 1, taken_over_by(first))) {
  device->expect_one_length(has_one_length(*dataset.samples));
}

}  // namespace frostpipe
