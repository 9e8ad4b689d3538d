#include "base/error.h"
#include "executor/execute.h"
#include "executor/installation/libtorch_facts.h"
#include "operators/execute_net.h"
#include "serving/server/servable_model.h"
#include "serving/server/worker/partition_compute.h"

// Replaces the executor in the program without LibTorch. Planning and simulating work; functions that need tensors say
// how to get the executor.

namespace frostpipe {
namespace {

[[noreturn]] void left_out(const char* purpose) {
  throw RuntimeFailure(std::string("the LibTorch executor, frostpipe-executor, is not beside this program; build the "
                                   "preset 'default' (scripts/setup) to ") +
                       purpose);
}

}  // namespace

bool executor_is_linked() { return false; }

LibTorchFacts libtorch_facts() { left_out("look at LibTorch"); }

InputsFound check_inputs(const TrainOptions&) { left_out("train"); }

std::vector<std::int64_t> largest_micro_batches(const TrainOptions&, const InputsFound&) { left_out("train"); }

std::vector<std::string> check_inputs(const MeasureOptions&, int) { left_out("measure a profile"); }

void fail_on_all_ranks(const Membership&, const std::string&) { left_out("train"); }

void train(Membership&, const TrainOptions&, const InputsFound&, const TrainCallbacks&) { left_out("train"); }

MeasuredProfile measure_profile(const RankEnvironment&, const MeasureOptions&, const Progress&) {
  left_out("measure a profile");
}

bool is_net_folder(const std::filesystem::path&) { return false; }

NetInputsFound check_net_inputs(const NetTrainOptions&) { left_out("train"); }

void train_net(Membership&, const NetTrainOptions&, const TrainCallbacks&) { left_out("train"); }

void emulate_operators(Membership&, const OperatorPlan&, const std::filesystem::path&) { left_out("train"); }

Evaluation evaluate_net(const EvaluateOptions&, const Progress&) { left_out("evaluate a model"); }

void check_inputs(const OperatorMeasureOptions&) { left_out("measure a profile"); }

MeasuredOperators measure_operators(const RankEnvironment&, const OperatorMeasureOptions&, const Progress&) {
  left_out("measure a profile");
}

Evaluation evaluate(const EvaluateOptions&, const Progress&) { left_out("evaluate a model"); }

ServableModel open_servable_model(const std::vector<HeadFolder>&, const ServedModel&, DType) {
  left_out("serve a model");
}

std::unique_ptr<PartitionCompute> load_partition(const PartitionLoad&) { left_out("serve a model"); }

}  // namespace frostpipe
