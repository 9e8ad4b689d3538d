#pragma once
#include <vector>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/communication/communicator.h"
#include "executor/runtime/rank_session.h"

namespace frostpipe {

/// Of each layer, the ranks that have offloaded its moments, lowest first. Called by all ranks.
std::vector<std::vector<LayerPart>> offloaded_parts(const RankSession& session, int num_layers,
                                                    Communicator& communicator);

/// What goes into a checkpoint, and by whom.
struct LayersToWrite {
  std::vector<LayerImage> own;  // whole layers that this rank writes
  std::vector<int> writers;     // ranks, by layer
};

/// Whole layers: of tensor ranks one brings their parts together. Those that train are spread over the replicas and
/// tensor ranks; frozen ones are with the first rank that has offloaded moments of them, else spread as well. Of frozen
/// ones that `writer` has already nothing is sent. Called by all ranks.
LayersToWrite layers_to_write(RankSession& session, int num_layers, const CheckpointWriter& writer,
                              Communicator& communicator);

}  // namespace frostpipe
