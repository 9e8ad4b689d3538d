#pragma once
#include "executor/loading/dataset.h"
#include "executor/training/evaluation/score.h"
#include "operators/nets/net_folder.h"

namespace frostpipe {

/// How a folder's net takes pictures.
ImageInput image_input(const NetFolder& folder, const SampleOptions& options, std::uint64_t seed);

/// What the net answers to these samples, by running statistics, in this process: for each the class and its
/// probability, as score_of takes them. `state` has every layer. `progress` may be empty.
std::vector<double> answers_of_net(const NetShape& net, const NetState& state, const Dataset& dataset,
                                   const std::vector<int>& samples, int batch_size, const Progress& progress);

}  // namespace frostpipe
