#pragma once
#include "executor/loading/dataset.h"
#include "executor/training/evaluation/score.h"
#include "operators/nets/net_folder.h"

namespace frostpipe {

/// How a folder's net takes pictures.
ImageInput image_input(const NetFolder& folder, const SampleOptions& options, std::uint64_t seed);

/// How the net does on these samples, by running statistics, in this process. `state` has every layer. `progress` may
/// be empty.
Score score_net(const NetShape& net, const NetState& state, const Dataset& dataset, const std::vector<int>& samples,
                int batch_size, const Progress& progress);

}  // namespace frostpipe
