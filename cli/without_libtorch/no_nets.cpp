#include "cli/without_libtorch/left_out.h"
#include "operators/execute_net.h"

// Replaces operators/training in frostpipe-nets without LibTorch.

namespace frostpipe {
namespace {

constexpr const char* kExecutor = "frostpipe-nets-executor";

}  // namespace

bool is_net_folder(const std::filesystem::path&) { return false; }

InputsFound check_net_inputs(const TrainOptions&) { left_out(kExecutor, "train"); }

void emulate_operators(Membership&, const OperatorPlan&, const std::filesystem::path&) { left_out(kExecutor, "train"); }

Evaluation evaluate_net(const EvaluateOptions&, const Progress&) { left_out(kExecutor, "evaluate a model"); }

void check_inputs(const OperatorMeasureOptions&) { left_out(kExecutor, "measure a profile"); }

MeasuredOperators measure_operators(const RankEnvironment&, const OperatorMeasureOptions&, const Progress&) {
  left_out(kExecutor, "measure a profile");
}

}  // namespace frostpipe
