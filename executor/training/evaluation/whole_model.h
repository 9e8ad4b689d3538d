#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/models/folder/model_folder.h"
#include "executor/runtime/schedule_runner.h"
#include "executor/runtime/transformer_stage.h"

namespace frostpipe {

/// A saved model loaded in this process, in float32 on `device`. `folder` and `samples` must outlive it.
class WholeModel {
 public:
  WholeModel(const ModelFolder& folder, const WeightFiles& weights, const Samples& samples, const std::string& device);
  AnswerShape answer_shape() const { return stages_.at(0)->answer_shape(); }
  ScheduleRunner& runner() { return *runner_; }
  const std::map<int, LayerState>& layers() const { return layers_; }

 private:
  Model model_;
  std::unique_ptr<ComputeDevice> device_;
  TransformerStageFactory factory_;
  std::map<int, LayerState> layers_;
  std::map<int, std::unique_ptr<StageCompute>> stages_;
  ActiveGroups alone_;
  std::optional<ScheduleRunner> runner_;
};

}  // namespace frostpipe
