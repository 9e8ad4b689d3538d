#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/execute.h"
#include "operators/plan/operator_plan.h"

// Training of convolutional nets by plans of operators, without LibTorch's headers.

namespace frostpipe {

/// From an epoch on: a plan for the layers that train then.
struct NetPhase {
  int first_epoch = 0;
  OperatorPlan plan;
};

/// Device d of the plans is rank d, a CPU of its class (operators/training/cpu_class.h).
struct NetTrainOptions {
  /// What is trained, on what, how fast. A plan, samples' tokens and freeze rules are not looked at.
  TrainOptions common;
  double momentum = 0.9;  // of SGD
  int num_epochs = 1;     // each of as many whole mini-batches as there are
  /// The first from epoch 0 on; alike but for what is frozen.
  std::vector<NetPhase> phases;
};

/// What a look at a run's inputs tells, as InputsFound does.
struct NetInputsFound {
  int num_training_samples = 0, num_test_samples = 0;
  Bytes largest_file_bytes = 0;  // that a run writes
  std::vector<std::string> starts_at_random, notes;
};

/// Whether a model folder is of a net that plans of operators train.
bool is_net_folder(const std::filesystem::path& model_folder);

/// Throws InvalidInput for what is wrong with model folder, data, or plans that are not of this net.
NetInputsFound check_net_inputs(const NetTrainOptions& options);

/// Trains; called by all ranks. Rank 0 writes the run folder: summary.json, trace.json, model/, checkpoints/, and goes
/// on from one of these as train() does; the plan may be another one for the same mini-batch. Throws InvalidInput and
/// RuntimeFailure as train() does; a lost rank ends the run. Of the callbacks only progress and note are called.
void train_net(Membership& membership, const NetTrainOptions& options, const TrainCallbacks& callbacks);

/// Carries out the plan's iterations with the durations of its tasks on a virtual clock: order, messages and links are
/// real. Called by all ranks; rank 0 writes summary.json to `output`. Throws InvalidInput where the plan's devices
/// share ports, which emulated links do not know.
void emulate_operators(Membership& membership, const OperatorPlan& plan, const std::filesystem::path& output);

/// As evaluate(), of a net's folder.
Evaluation evaluate_net(const EvaluateOptions& options, const Progress& progress);

struct OperatorMeasureOptions {
  std::filesystem::path model;
  int global_batch_size = 64;
  std::vector<std::string> device_classes;  // of CPUs; rank r computes on the r-th
  bool quick = false;
};

struct MeasuredOperators {
  OperatorGraph graph;
  Cluster cluster;
};

/// Measures every operator of the folder's net on all ranks at once, each on its device class, and the links between
/// them. Called by all ranks; the result is rank 0's.
MeasuredOperators measure_operators(const RankEnvironment& self, const OperatorMeasureOptions& options,
                                    const Progress& progress);

/// Throws InvalidInput for a folder that is none of a net, and for classes that are no CPUs.
void check_inputs(const OperatorMeasureOptions& options);

}  // namespace frostpipe
