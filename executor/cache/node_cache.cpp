#include "executor/cache/node_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "executor/cache/store/activation_store.h"
#include "executor/device/memory_meter.h"

namespace frostpipe {
namespace {

at::ScalarType stored_type(DType dtype) { return dtype == DType::kBFloat16 ? at::kBFloat16 : at::kFloat; }

/// Returns a name that is the same on all ranks and differs from that of any other job.
std::string name_of_job(Communicator& communicator) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return communicator.broadcast(fmt::format("frostpipe-{}-{:x}", getpid(), now), 0);
}

/// Returns the files of the store of the node's first rank that has one; empty if no rank of the node has one. Must be
/// called by all ranks.
ActivationStore::Files files_on_node(int node, const ActivationStore* store, Communicator& communicator) {
  const ActivationStore::Files own = store ? store->files() : ActivationStore::Files{};
  for (const std::string& text : communicator.gather(fmt::format("{} {} {}", node, own.shared, own.disk))) {
    const std::size_t first = text.find(' '), second = text.rfind(' ');
    if (text.substr(0, first) == std::to_string(node) && second > first + 1)
      return {text.substr(first + 1, second - first - 1), text.substr(second + 1)};
  }
  return {};
}

/// A rank's report on its node's store.
struct NodeReport {
  int node = 0;
  std::string failure;  // why this rank cannot use it; empty if it can
  std::string note;     // the part of the limits that the store could not reserve
};

/// Returns the reports of all ranks, by rank.
std::vector<NodeReport> gather_reports(const NodeReport& own, Communicator& communicator) {
  std::vector<NodeReport> reports;
  for (const std::string& text : communicator.gather(fmt::format("{}\n{}\n{}", own.node, own.failure, own.note))) {
    const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
    reports.push_back({std::stoi(text), text.substr(first + 1, second - first - 1), text.substr(second + 1)});
  }
  return reports;
}

/// True if a rank of the node cannot use the store. Then none of them uses it, so that every rank can read what any of
/// them writes.
bool has_failure(const std::vector<NodeReport>& reports, int node) {
  return std::any_of(reports.begin(), reports.end(),
                     [node](const NodeReport& report) { return report.node == node && !report.failure.empty(); });
}

/// Returns a sentence on the limits and failures of all nodes' caches, the same on all ranks.
std::string note_of(const std::vector<NodeReport>& reports) {
  std::set<int> nodes;
  for (const NodeReport& report : reports) nodes.insert(report.node);
  std::vector<std::string> notes;
  for (const int node : nodes) {
    const auto has_note = [&](const NodeReport& report) {
      return report.node == node && !(has_failure(reports, node) ? report.failure : report.note).empty();
    };
    const auto found = std::find_if(reports.begin(), reports.end(), has_note);
    if (found == reports.end()) continue;
    const std::string where = nodes.size() > 1 ? fmt::format("node {}: ", node) : "";
    notes.push_back(where + (found->failure.empty() ? found->note
                                                    : fmt::format("no cache at all: rank {}: {}",
                                                                  found - reports.begin(), found->failure)));
  }
  return fmt::format("{}", fmt::join(notes, "; "));
}

int first_rank_of_node(int node, Communicator& communicator) {
  const std::vector<std::string> nodes = communicator.gather(std::to_string(node));
  return static_cast<int>(std::find(nodes.begin(), nodes.end(), std::to_string(node)) - nodes.begin());
}

}  // namespace

NodeCache::NodeCache(const NodeCacheOptions& options, std::vector<CacheableSample> all_samples,
                     Communicator& communicator, std::unique_ptr<NodeCache> earlier)
    : communicator_(communicator), samples_(options.samples) {
  const at::ScalarType stored = options.compute.dtype() == at::kDouble && options.limits.dtype == DType::kFloat32
                                    ? at::kDouble
                                    : stored_type(options.limits.dtype);
  ActivationStoreOptions store{.entry_bytes = {},
                               .memory_bytes = options.limits.memory_bytes,
                               .disk_bytes = options.limits.disk_bytes,
                               .disk_folder = options.disk_folder};
  std::vector<int> slot_of_sample(all_samples.size(), -1);
  for (const int sample : options.samples) {
    slot_of_sample[sample] = static_cast<int>(store.entry_bytes.size());
    store.entry_bytes.push_back(ActivationCache::entry_bytes(all_samples[sample].tokens, options.hidden_size, stored));
  }
  const std::string name = fmt::format("{}-node{}", name_of_job(communicator), options.node);
  if (earlier && earlier->samples_ == samples_) store_ = std::move(earlier->store_);
  NodeReport own{.node = options.node, .failure = {}, .note = {}};
  const auto attempt = [&own](const std::function<void()>& work) {
    try {
      work();
    } catch (const RuntimeFailure& error) {
      own.failure = error.what();
    }
  };
  ActivationStore::Files files = files_on_node(options.node, store_.get(), communicator);
  const bool creates = first_rank_of_node(options.node, communicator) == communicator.rank() && files.shared.empty();
  if (creates) attempt([&] { store_ = ActivationStore::create(store, name); });
  files = files_on_node(options.node, store_.get(), communicator);
  if (!store_ && !files.shared.empty()) attempt([&] { store_ = ActivationStore::open(store, files); });
  if (store_) own.note = store_->note();
  // Every rank waits here for the others, because the store's files can be opened only while a process holds them.
  const std::vector<NodeReport> reports = gather_reports(own, communicator);
  note_ = note_of(reports);
  if (has_failure(reports, options.node)) {
    store_.reset();
    std::fill(slot_of_sample.begin(), slot_of_sample.end(), -1);
  }
  view_ = std::make_unique<ActivationCache>(store_.get(), std::move(all_samples), std::move(slot_of_sample),
                                            options.hidden_size, stored, options.compute,
                                            earlier ? earlier->view().counts() : CacheCounts());
}

NodeCache::~NodeCache() = default;

void NodeCache::set_boundary(int first_trainable_layer, const std::map<int, LayerState>& layers,
                             const std::vector<std::vector<LayerPart>>& parts) {
  // The hashes are summed as halves of 32 bits, which doubles hold exactly.
  const std::size_t known = layer_hashes_.size(), wanted = static_cast<std::size_t>(first_trainable_layer);
  std::vector<double> halves(2 * (wanted - std::min(known, wanted)), 0.0);
  for (std::size_t layer = known; layer < wanted; ++layer) {
    const auto held = layers.find(static_cast<int>(layer));
    if (held == layers.end()) continue;
    const LayerState& state = held->second;
    // The whole layer, of which this rank may hold only a part, is in host memory.
    const UncountedMemory outside_the_device;
    const at::Tensor weights = collect({.whole = state.whole,
                                        .parts = parts[layer],
                                        .to_rank = parts[layer].front().rank,
                                        .tag = 0,
                                        .what = fmt::format("collecting layer {} for the cache", layer)},
                                       state.weights, state.weights.scalar_type(), communicator_.control_group());
    if (!weights.defined()) continue;
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

void NodeCache::forget_boundaries() {
  layer_hashes_.clear();
  view_->forget_boundaries();
}

}  // namespace frostpipe
