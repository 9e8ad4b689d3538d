#pragma once
#include "executor/loading/dataset.h"
#include "executor/training/evaluation/score.h"
#include "operators/nets/net_folder.h"

namespace frostpipe {

/// Returns the rules by which pictures become inputs of the folder's net: its size and normalisation, and the
/// augmentation of `options`, whose random numbers depend on `seed`.
ImageInput image_input(const NetFolder& folder, const SampleOptions& options, std::uint64_t seed);

/// Returns the net's answers to these samples, computed in this process with running statistics: for each sample the
/// class and its probability, the form that score_of() takes. `state` must have every layer. `progress` may be empty.
std::vector<double> answers_of_net(const NetShape& net, const NetState& state, const Dataset& dataset,
                                   const std::vector<int>& samples, int batch_size, const Progress& progress);

}  // namespace frostpipe
