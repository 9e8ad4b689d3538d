#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/cache/activation_cache.h"
#include "executor/communication/communicator.h"
#include "executor/models/layer_state.h"
#include "executor/models/shards.h"
#include "plan/plan.h"

namespace frostpipe {

struct NodeCacheOptions {
  CacheLimits limits;
  std::filesystem::path
      disk_folder;           // for limits.disk_bytes; removed again by the system even if this process is killed
  int node = 0;              // this rank's; ranks of one node share a store
  std::vector<int> samples;  // numbers of those that the node's ranks may train on
  std::int64_t hidden_size = 0;
  at::TensorOptions compute;
};

/// A node's store of activations and this rank's view of it. Opened by all ranks of the job together, idle ones too:
/// they may join later. Where a rank of the node cannot use the store, none of them does: nothing is found then, and
/// all is computed.
class NodeCache {
 public:
  /// `all_samples`: by number, those of other nodes too. `earlier`: this process's, of an earlier rendezvous round,
  /// or null: its store is used on, by new ranks of the node too. Throws InvalidInput for a disk folder that is none.
  NodeCache(const NodeCacheOptions& options, std::vector<CacheableSample> all_samples, Communicator& communicator,
            std::unique_ptr<NodeCache> earlier = nullptr);
  ~NodeCache();

  ActivationCache& view() { return *view_; }
  /// What could not be reserved or used, on any node, in a sentence; the same on all ranks; empty if all is well.
  const std::string& note() const { return note_; }

  /// Called by all ranks on entering a phase with a cache: makes its frozen prefix the boundary. `parts`: the ranks
  /// that answer for each layer, see collect().
  void set_boundary(int first_trainable_layer, const std::map<int, LayerState>& layers,
                    const std::vector<std::vector<LayerPart>>& parts);
  /// Layers may train again: what is stored counts only where the same weights freeze again.
  void forget_boundaries();

 private:
  Communicator& communicator_;
  std::vector<int> samples_;
  std::vector<std::uint64_t> layer_hashes_;  // of the frozen layers, which no longer change
  std::unique_ptr<ActivationStore> store_;
  std::unique_ptr<ActivationCache> view_;
  std::string note_;
};

}  // namespace frostpipe
