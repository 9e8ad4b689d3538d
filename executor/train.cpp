#include "executor/data_shards.h"
#include "executor/dataset.h"
#include "executor/training_run.h"
#include "profiles/error.h"

namespace frostpipe {

std::unique_ptr<Subject> load_subject(const TrainOptions& options) {
  std::unique_ptr<Subject> subject = make_subject(options);
  require_same_model(options.plan, subject->model(), options.plan_source);
  for (const Phase& phase : options.plan.phases)
    if (phase.layout.tensor_parallel_size > 1)
      throw InvalidInput(options.plan_source + ": layout.tensor_parallel_size", "must be 1 to train: this version has no tensor parallelism but in the simulator",
                         std::to_string(phase.layout.tensor_parallel_size));
  validate(options.plan, subject->model(), options.plan_source);
  return subject;
}

void train(Membership& membership, const TrainOptions& options, const TrainCallbacks& callbacks) { TrainingRun(membership, options, callbacks).train(); }

InputsFound check_inputs(const TrainOptions& options) {
  const std::unique_ptr<Subject> subject = load_subject(options);
  FreezeController(options.freeze, num_blocks(subject->model()), 1);
  return {static_cast<int>(subject->dataset().split.train.size()), subject->starts_at_random()};
}

}  // namespace frostpipe
