#pragma once
#include <span>

namespace frostpipe {

/// AutoPipe as published (He et al. 2021, section 3.2 and the published code): parameters stand for memory. The
/// pipeline is halved as long as the largest stage of the greedy partition of what still trains is no larger than the
/// largest stage was at the start, with nothing frozen and `initial_length` stages. May end at 1.
///
/// `parameters_in_millions`: embedding, (attention, MLP) per block, then whatever follows the blocks. Frozen units are
/// out of the list, the embedding together with the first block. For comparison with the paper: our own rule is
/// next_elastic_phase(), which counts bytes. Throws InvalidInput if frozen_blocks is not in the list or
/// initial_length < 1.
int paper_pipeline_length(std::span<const double> parameters_in_millions, int frozen_blocks, int initial_length);

}  // namespace frostpipe
