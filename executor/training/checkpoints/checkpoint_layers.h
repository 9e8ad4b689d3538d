#pragma once
#include <vector>

#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/communication/communicator.h"
#include "executor/runtime/rank_session.h"

namespace frostpipe {

/// Returns, for each layer, the ranks that have offloaded its moments, lowest first. Must be called by all ranks.
std::vector<std::vector<LayerPart>> offloaded_parts(const RankSession& session, int num_layers,
                                                    Communicator& communicator);

/// The layers of a checkpoint, and the ranks that write them.
struct LayersToWrite {
  std::vector<LayerImage> own;            // whole layers that this rank writes
  std::vector<std::vector<int>> writers;  // ranks by layer: one in each place that has the layer
};

/// Whole layers: of tensor ranks one brings their parts together. `places`: by rank, equal where ranks see the same
/// folder. Each place writes all that its ranks have, so that one that is lost takes along no more than the layers that
/// nobody else has. Those that train are spread over the place's replicas and tensor ranks; frozen ones are with its
/// first rank that has offloaded moments of them, else spread as well. Of frozen ones that `writer` has already nothing
/// is sent. Called by all ranks.
LayersToWrite layers_to_write(RankSession& session, int num_layers, const std::vector<int>& places,
                              const CheckpointWriter& writer, Communicator& communicator);

}  // namespace frostpipe
