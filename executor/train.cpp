#include "executor/dataset.h"
#include "executor/training_run.h"
#include "profiles/error.h"

namespace frostpipe {

InputsFound check_inputs(const TrainOptions& options) {
  const Nanoseconds begin = steady_now_ns();
  std::shared_ptr<const Subject> subject = make_subject(options);
  require_same_model(options.plan, subject->model(), options.plan_source);
  for (const Phase& phase : options.plan.phases)
    if (phase.layout.tensor_parallel_size > 1)
      throw InvalidInput(options.plan_source + ": layout.tensor_parallel_size", "must be 1 to train: this version has no tensor parallelism but in the simulator",
                         std::to_string(phase.layout.tensor_parallel_size));
  validate(options.plan, subject->model(), options.plan_source);
  FreezeController(options.freeze, num_blocks(subject->model()), 1);
  const std::vector<int>& train = subject->dataset().split.train;
  return {.subject = subject,
          .reading_ns = steady_now_ns() - begin,
          .num_training_samples = static_cast<int>(train.size()),
          .longest_tokens = longest_tokens(*subject->dataset().samples, train),
          .starts_at_random = subject->starts_at_random()};
}

bool executor_is_linked() { return true; }

void train(Membership& membership, const TrainOptions& options, const InputsFound& inputs, const TrainCallbacks& callbacks) {
  FROSTPIPE_CHECK(inputs.subject, "a rank has looked at its inputs");
  TrainingRun(membership, options, inputs, callbacks).train();
}

}  // namespace frostpipe
