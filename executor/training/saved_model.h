#pragma once
#include <filesystem>
#include <map>
#include <vector>

#include "executor/models/folder/model_folder.h"
#include "executor/models/shards.h"

namespace frostpipe {

class Communicator;

/// write_model_folder on rank 0, which collects layer after layer from the ranks that hold them: it needs room for one
/// layer only. `layers`: those of this rank; `parts`: by layer, the ranks that hold it. Called by all ranks.
void save_model_folder(const ModelFolder& source, bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                       const std::vector<std::vector<LayerPart>>& parts, Communicator& communicator,
                       const std::filesystem::path& target, const SavedWeights& saved);

}  // namespace frostpipe
