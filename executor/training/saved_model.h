#pragma once
#include <filesystem>
#include <map>
#include <vector>

#include "executor/models/folder/model_folder.h"

namespace frostpipe {

class Communicator;

/// write_model_folder on rank 0, which collects layer after layer from the ranks that hold them: it needs room for one
/// layer only. `layers`: those of this rank; holder_of[l] = rank that has layer l. Called by all ranks.
void save_model_folder(const ModelFolder& source, bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                       const std::vector<int>& holder_of, Communicator& communicator,
                       const std::filesystem::path& target);

}  // namespace frostpipe
