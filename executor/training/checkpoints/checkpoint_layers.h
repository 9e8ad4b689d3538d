#pragma once
#include <functional>
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
  std::vector<std::vector<int>> writers;  // ranks by layer: one in each folder that has the layer
};

/// Sends all layers to the ranks that write them. `folder_of_rank` is indexed by rank and equal for ranks that see the
/// same folder. Frozen layers whose files `writer` has already are not sent. Must be called by all ranks.
using CollectLayers =
    std::function<LayersToWrite(const std::vector<int>& folder_of_rank, const CheckpointWriter& writer)>;

/// Returns the function that collects the layers of a pipeline. The session and the communicator must outlive it. One
/// of the tensor ranks collects all parts of a layer. Each folder writes every layer that its ranks have, so that the
/// loss of a folder loses only layers that no other folder has. Layers are distributed over the folder's replicas and
/// tensor ranks. Frozen layers with offloaded moments are an exception: each folder whose ranks have offloaded all
/// moments of the layer writes it, by the first of these ranks; if no folder has all, one rank of the run writes it.
CollectLayers layers_of(RankSession& session, Communicator& communicator);

}  // namespace frostpipe
