#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/execute.h"
#include "operators/plan/operator_plan.h"

// The functions that train and evaluate convolutional nets by operator plans. This header includes none of LibTorch's.

namespace frostpipe {

/// Returns whether a model folder holds a net that operator plans train.
bool is_net_folder(const std::filesystem::path& model_folder);

/// Does for a net what check_inputs() does before train(). The plan's phases have operator plans
/// (operators/plan/net_phase.h), whose device d is rank d, a CPU of its class (operators/training/cpu_class.h). SGD has
/// a momentum of 0.9. Throws InvalidInput for a wrong model folder, wrong data, or a plan of another net.
InputsFound check_net_inputs(const TrainOptions& options);

/// Runs ten iterations of the plan in which a task only takes its planned duration, on a virtual clock. The order of
/// the tasks and the messages are real, and links are emulated. All ranks must call it; rank 0 writes summary.json and
/// trace.json to `output`. The plan's devices must not share ports, which emulated links do not model, and its order
/// must not wait in a cycle (simulate_operators). Throws InvalidInput unless there are as many ranks as devices.
void emulate_operators(Membership& membership, const OperatorPlan& plan, const std::filesystem::path& output);

/// Does for the folder of a net what evaluate() does, on the CPU. Throws InvalidInput for another device, and for a
/// folder that lacks a tensor.
Evaluation evaluate_net(const EvaluateOptions& options, const Progress& progress);

struct OperatorMeasureOptions {
  std::filesystem::path model;
  int global_batch_size = 64;
  std::vector<std::string> device_classes;  // classes of CPUs, by rank
  bool quick = false;                       // measure fewer times, for rough values
};

struct MeasuredOperators {
  OperatorGraph graph;
  Cluster cluster;
};

/// Measures every operator of the folder's net on all ranks at once, each on its device class, and the links between
/// them. All ranks must call it; only rank 0's result is complete.
MeasuredOperators measure_operators(const RankEnvironment& self, const OperatorMeasureOptions& options,
                                    const Progress& progress);

/// Throws InvalidInput for a folder that holds no net, a mini-batch that is too large for it, and classes that are not
/// CPUs.
void check_inputs(const OperatorMeasureOptions& options);

}  // namespace frostpipe
