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
  std::filesystem::path disk_folder;  // for limits.disk_bytes; the files disappear even if this process is killed
  int node = 0;                       // node of this rank; ranks of one node share a store
  std::vector<int> samples;           // numbers of the samples that the node's ranks may train on
  std::int64_t hidden_size = 0;
  at::TensorOptions compute;
};

/// A node's store of activations and this rank's view of it. All ranks of the job must construct it together, idle ones
/// too, since they may train later. If a rank of the node cannot use the store, no rank of the node uses it: all
/// entries are then missing, and all activations are computed.
class NodeCache {
 public:
  /// `all_samples` are the samples of all nodes, by number. `earlier` is this process's cache of the previous
  /// rendezvous round, or null; its store is kept, and used by new ranks of the node too, if the node has the same
  /// samples. Throws InvalidInput, on the rank that makes the store, if the disk folder is not a folder.
  NodeCache(const NodeCacheOptions& options, std::vector<CacheableSample> all_samples, Communicator& communicator,
            std::unique_ptr<NodeCache> earlier = nullptr);
  ~NodeCache();

  ActivationCache& view() { return *view_; }
  /// Returns a sentence on the parts of the cache that could not be reserved or used on any node, the same on all
  /// ranks; "" if there are none.
  const std::string& note() const { return note_; }

  /// Makes the frozen prefix of a phase the boundary. Must be called by all ranks on entering a phase with a cache.
  /// `parts` are the ranks that hold each layer, see collect().
  void set_boundary(int first_trainable_layer, const std::map<int, LayerState>& layers,
                    const std::vector<std::vector<LayerPart>>& parts);
  /// Call it when layers may train again. Entries are found again only after the same weights have frozen again.
  void forget_boundaries();

 private:
  Communicator& communicator_;
  std::vector<int> samples_;
  std::vector<std::uint64_t> layer_hashes_;  // of the frozen layers, whose weights no longer change
  std::unique_ptr<ActivationStore> store_;
  std::unique_ptr<ActivationCache> view_;
  std::string note_;
};

}  // namespace frostpipe
