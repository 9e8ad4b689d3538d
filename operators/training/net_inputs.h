#pragma once
#include "executor/loading/dataset.h"
#include "operators/execute_net.h"
#include "operators/nets/net_folder.h"
#include "operators/training/cpu_class.h"

namespace frostpipe {

/// What a run of a net reads.
struct NetTask {
  NetFolder folder;
  Dataset dataset;
};

/// Reads the folder's configuration and the data. Throws InvalidInput, also unless every plan is of the folder's net,
/// its devices do not wait for each other in a circle, and its mini-batch is no larger than the data.
NetTask open_net_task(const NetTrainOptions& options);

/// Throws InvalidInput unless there is a rank for every device: ranks may have been started by others.
void require_ranks(const OperatorPlan& plan, const RankEnvironment& self);

/// Of every device of a plan. Throws InvalidInput unless all are CPUs.
std::vector<CpuClass> cpu_classes_of(const OperatorPlan& plan, const std::string& source);

}  // namespace frostpipe
