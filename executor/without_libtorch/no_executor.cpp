#include "executor/execute.h"
#include "executor/rendezvous.h"
#include "profiles/error.h"

// Stands in for the whole executor where LibTorch is left out, so that no caller needs to know: planning and simulating
// work, what needs tensors says how to get them.

namespace frostpipe {
namespace {

[[noreturn]] void left_out(const char* purpose) {
  throw RuntimeFailure(std::string("this frostpipe was built without the LibTorch executor; build the preset 'default' "
                                   "(scripts/setup) to ") +
                       purpose);
}

}  // namespace

std::unique_ptr<Rendezvous> open_rendezvous_store() { left_out("run ranks"); }

FreezePolicy parse_freeze_policy(const std::string&, const FreezeOptions&) { left_out("train"); }

InputsFound check_inputs(const TrainOptions&) { left_out("train"); }

void check_inputs(const MeasureOptions&) { left_out("measure a profile"); }

void train(Membership&, const TrainOptions&, const TrainCallbacks&) { left_out("train"); }

MeasuredProfile measure_profile(const RankEnvironment&, const MeasureOptions&, const Progress&) {
  left_out("measure a profile");
}

Evaluation evaluate(const EvaluateOptions&, const Progress&) { left_out("evaluate a model"); }

}  // namespace frostpipe
