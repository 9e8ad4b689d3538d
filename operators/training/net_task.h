#pragma once
#include "executor/training/training_task.h"
#include "operators/nets/net_folder.h"
#include "operators/plan/operator_plan.h"
#include "operators/training/cpu_class.h"

namespace frostpipe {

/// The task to train a net by operator plans. Each layer of the net is a layer of the model, and a block of its own.
class NetTask final : public TrainingTask {
 public:
  /// Reads the folder's configuration, the data and the plan's phases. Throws InvalidInput if any of them is invalid,
  /// and unless every operator plan is of the folder's net, its devices are CPUs that do not wait for each other in a
  /// cycle, and the first plan's mini-batch is no larger than the training data. `options` must outlive this object.
  explicit NetTask(const TrainOptions& options);

  const Model& model() const override { return model_; }
  const Dataset& dataset() const override { return dataset_; }
  std::vector<std::string> starts_at_random() const override;
  std::unique_ptr<TrainingSession> make_session(const SessionPlace& place) const override;
  /// Fewer than for pipelines, since a step has a span for every operator.
  int traced_steps() const override { return 32; }
  void complete(const TrainingPlan& executed, RunSummary& run, Trace& whole_run) const override;

  const NetFolder& folder() const { return folder_; }
  /// The first plan of the run. The number of a stage in traces is the index of an operator in it.
  const OperatorPlan& first_plan() const { return first_plan_; }
  const std::string& plan_source() const { return options_.plan_source; }
  std::uint64_t seed() const { return options_.seed; }

 private:
  const TrainOptions& options_;
  NetFolder folder_;
  Dataset dataset_;
  Model model_;
  OperatorPlan first_plan_;
};

/// Returns the class of each device. Throws InvalidInput if one is not a CPU.
std::vector<CpuClass> cpu_classes_of(const OperatorPlan& plan, const std::string& source);

}  // namespace frostpipe
