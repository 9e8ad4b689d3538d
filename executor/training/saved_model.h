#pragma once
#include <filesystem>
#include <map>
#include <vector>

#include "executor/models/folder/model_folder.h"
#include "executor/models/shards.h"

namespace frostpipe {

class Communicator;

/// Writes the model folder `target` on rank 0 (write_model_folder). Rank 0 collects one layer at a time from the ranks
/// that hold it, and so needs room for one layer only. `layers` are those of this rank; `parts` has, by layer, the
/// ranks that hold it. Must be called by all ranks.
void save_model_folder(const ModelFolder& source, bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                       const std::vector<std::vector<LayerPart>>& parts, Communicator& communicator,
                       const std::filesystem::path& target, const SavedWeights& saved);

}  // namespace frostpipe
