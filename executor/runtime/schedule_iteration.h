#pragma once
// For the sources of ScheduleRunner only.
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "executor/runtime/schedule_runner.h"
#include "executor/runtime/stage_compute.h"

namespace frostpipe {

/// Tensors by stage and part.
using StageTensors = std::map<std::pair<int, Part>, at::Tensor>;

/// The state of an iteration from its first action to its last.
struct ScheduleRunner::Iteration {
  int step = 0;
  MiniBatch batch;
  const RankParts& parts;
  std::vector<SampleRange> micro_batches;
  std::optional<MessageExchange> exchange{};
  std::optional<GradientStep> gradient_step{};  // set while the schedule's body runs
  StageTensors inputs{}, output_gradients{};    // from RECV, or from a neighbouring stage on this rank, to their use
  StageTensors outputs{}, input_gradients{};    // from their computation until they are sent

  SampleRange range_of(const Action& action) const { return micro_batches[*action.micro_batch]; }
  StageCompute& compute(int stage) const { return *parts.stages.at(stage); }
};

/// Tensors that are shared between captured and other actions.
struct ScheduleRunner::GraphTensors {
  std::map<Action, at::Tensor> received{};  // by RECV
  StageTensors outputs{}, input_gradients{};
  std::optional<GradientStep> gradient_step{};  // kept between iterations if it is captured
};

}  // namespace frostpipe
