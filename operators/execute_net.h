#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/execute.h"
#include "operators/plan/operator_plan.h"

// Training of convolutional nets by plans of operators, without LibTorch's headers.

namespace frostpipe {

/// Returns whether a model folder holds a net that operator plans train.
bool is_net_folder(const std::filesystem::path& model_folder);

/// Does for a net what check_inputs() does before train(). The plan's phases have operator plans
/// (operators/plan/net_phase.h), whose device d is rank d, a CPU of its class (operators/training/cpu_class.h). SGD has
/// a momentum of 0.9. Throws InvalidInput for a wrong model folder, wrong data, or a plan of another net.
InputsFound check_net_inputs(const TrainOptions& options);

/// Carries out the plan's iterations with the durations of its tasks on a virtual clock: order, messages and links are
/// real. Called by all ranks; rank 0 writes summary.json to `output`. Throws InvalidInput if the plan's devices
/// share ports, which emulated links do not model.
void emulate_operators(Membership& membership, const OperatorPlan& plan, const std::filesystem::path& output);

/// Does for the folder of a net what evaluate() does.
Evaluation evaluate_net(const EvaluateOptions& options, const Progress& progress);

struct OperatorMeasureOptions {
  std::filesystem::path model;
  int global_batch_size = 64;
  std::vector<std::string> device_classes;  // classes of CPUs; rank r computes on the r-th
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

/// Throws InvalidInput for a folder that holds no net, and for classes that are not CPUs.
void check_inputs(const OperatorMeasureOptions& options);

}  // namespace frostpipe
