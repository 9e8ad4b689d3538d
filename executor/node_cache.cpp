#include "executor/node_cache.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "executor/activation_store.h"

namespace frostpipe {
namespace {

at::ScalarType stored_type(const std::string& dtype) { return dtype == "bfloat16" ? at::kBFloat16 : at::kFloat; }

/// The same on all ranks, and no other job's.
std::string name_of_job(Communicator& communicator) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return communicator.broadcast(fmt::format("frostpipe-{}-{:x}", getpid(), now), 0);
}

std::vector<int> ranks_of_node(int node, Communicator& communicator) {
  std::vector<double> nodes(communicator.world_size(), 0.0);
  nodes[communicator.rank()] = node;
  nodes = communicator.sum(std::move(nodes));
  std::vector<int> ranks;
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    if (static_cast<int>(nodes[rank]) == node) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

NodeCache::NodeCache(const NodeCacheOptions& options, const EncodedData& data, Communicator& communicator) : communicator_(communicator) {
  const at::ScalarType stored = options.compute.dtype() == at::kDouble && options.limits.dtype == "float32" ? at::kDouble : stored_type(options.limits.dtype);
  ActivationStoreOptions store{.entry_bytes = {},
                               .memory_bytes = options.limits.memory_bytes,
                               .disk_bytes = options.limits.disk_bytes,
                               .disk_folder = options.disk_folder};
  std::vector<int> slot_of_sample(data.token_ids.size(), -1);
  for (const int sample : options.samples) {
    slot_of_sample[sample] = static_cast<int>(store.entry_bytes.size());
    store.entry_bytes.push_back(ActivationCache::entry_bytes(static_cast<std::int64_t>(data.token_ids[sample].size()), options.hidden_size, stored));
  }
  const std::string name = fmt::format("{}-node{}", name_of_job(communicator), options.node);
  const bool creates = ranks_of_node(options.node, communicator).front() == communicator.rank();
  if (creates) store_ = ActivationStore::create(store, name);
  communicator.everyone().barrier();
  if (!creates) store_ = ActivationStore::open(store, name);
  communicator.everyone().barrier();
  if (creates) store_->unlink();
  note_ = store_->note();
  view_ = std::make_unique<ActivationCache>(*store_, data, std::move(slot_of_sample), options.hidden_size, stored, options.compute);
}

NodeCache::~NodeCache() = default;

void NodeCache::set_boundary(int first_trainable_layer, const std::map<int, LayerState>& layers, const std::vector<int>& holders) {
  // Halves of 32 bits pass through the sum of doubles unharmed.
  const std::size_t known = layer_hashes_.size(), wanted = static_cast<std::size_t>(first_trainable_layer);
  std::vector<double> halves(2 * (wanted - std::min(known, wanted)), 0.0);
  for (std::size_t layer = known; layer < wanted; ++layer) {
    if (holders[layer] != communicator_.rank()) continue;
    const at::Tensor weights = layers.at(static_cast<int>(layer)).weights.to(at::kCPU);
    const std::uint64_t hash = hash_bytes({static_cast<const std::byte*>(weights.data_ptr()), weights.nbytes()});
    halves[2 * (layer - known)] = static_cast<double>(hash >> 32);
    halves[2 * (layer - known) + 1] = static_cast<double>(hash & 0xffffffffu);
  }
  if (!halves.empty()) halves = communicator_.sum(std::move(halves));
  for (std::size_t i = 0; i + 1 < halves.size(); i += 2) {
    layer_hashes_.push_back(static_cast<std::uint64_t>(halves[i]) << 32 | static_cast<std::uint64_t>(halves[i + 1]));
  }
  const std::span<const std::uint64_t> prefix(layer_hashes_.data(), wanted);
  view_->set_boundary({.layer = first_trainable_layer, .key = hash_bytes(std::as_bytes(prefix))});
}

}  // namespace frostpipe
