#include "cli/without_libtorch/left_out.h"
#include "executor/execute.h"
#include "executor/installation/libtorch_facts.h"

// Replaces the executor in the program without LibTorch. Planning and simulating work; functions that need tensors say
// how to get the executor.

namespace frostpipe {
namespace {

constexpr const char* kExecutor = "frostpipe-executor";

}  // namespace

bool executor_is_linked() { return false; }

LibTorchFacts libtorch_facts() { left_out(kExecutor, "look at LibTorch"); }

InputsFound check_inputs(const TrainOptions&) { left_out(kExecutor, "train"); }

std::vector<std::int64_t> largest_micro_batches(const TrainOptions&, const InputsFound&) {
  left_out(kExecutor, "train");
}

std::vector<std::string> check_inputs(const MeasureOptions&, int) { left_out(kExecutor, "measure a profile"); }

void fail_on_all_ranks(const Membership&, const std::string&) { left_out(kExecutor, "train"); }

void train(Membership&, const TrainOptions&, const InputsFound&, const TrainCallbacks&) {
  left_out(kExecutor, "train");
}

MeasuredProfile measure_profile(const RankEnvironment&, const MeasureOptions&, const Progress&) {
  left_out(kExecutor, "measure a profile");
}

Evaluation evaluate(const EvaluateOptions&, const Progress&) { left_out(kExecutor, "evaluate a model"); }

}  // namespace frostpipe
