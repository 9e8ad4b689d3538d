#include "executor/training/rendezvous_round.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "executor/communication/hosts.h"
#include "executor/communication/registration.h"
#include "executor/data/data_shards.h"
#include "executor/elastic/logical_ranks.h"
#include "executor/elastic/lost_hosts.h"
#include "executor/training/pipeline_session.h"
#include "executor/training/policy/resume_point.h"

namespace frostpipe {

void RendezvousRound::connect(const RendezvousInfo& info) {
  info_ = info;
  const TrainOptions& options = run_.options;
  const RankEnvironment& self = info.self;
  const bool may_differ = lacks_hosts(environment_variables(), options.plan.world_size);
  if (info.generation == 0 && self.world_size != options.plan.world_size && !may_differ) {
    const InvalidInput wrong(options.plan_source + ": world_size",
                             fmt::format("must equal the number of ranks started ({})", self.world_size),
                             std::to_string(options.plan.world_size));
    if (self.watched_by_launcher) throw wrong;
    register_failure(self, wrong.what());
  }
  const bool went_through_host = communicator_ && communicator_->uses_host_staging();
  communicator_ = Communicator::connect(self, *run_.device, store_rendezvous_);
  if (is_first() && communicator_->uses_host_staging() && !went_through_host)
    run_.callbacks.note("ranks share a GPU: their messages go through host memory");
  find_nodes();
  communicator_->set_nodes(nodes_);
  if (options.emulation && options.emulation->links) {
    const Cluster cluster = remaining(*options.cluster, info_.logical_ranks);
    communicator_->emulate_links(cluster, options.emulation->shrink);
    communicator_->set_nodes(nodes_in_order(cluster));
  }
  const std::filesystem::path root = checkpoints_folder(options);
  checkpoint_folder_ = self.watched_by_launcher ? shared_checkpoint_folder(root, self.world_size)
                                                : checkpoint_folder_of(root, *communicator_);
}

/// Finds the node of each rank. If ranks are missing in the first round, their hosts are inferred from the cluster.
void RendezvousRound::find_nodes() {
  const TrainOptions& options = run_.options;
  if (options.num_nodes > 0) {
    nodes_ = nodes_of_logical_ranks(info_.logical_ranks, options.plan.world_size, options.num_nodes);
    num_nodes_ = options.num_nodes;
    return;
  }
  nodes_ = hosts_of_ranks(*communicator_);
  if (info_.generation == 0 && lacks_ranks()) {
    info_.logical_ranks = logical_ranks_of(nodes_, *options.cluster);
    const std::vector<int> nodes = nodes_in_order(*options.cluster);
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) nodes_[rank] = nodes[info_.logical_ranks[rank]];
    num_nodes_ = *std::max_element(nodes.begin(), nodes.end()) + 1;
    return;
  }
  if (info_.generation == 0) nodes_of_logical_ranks_ = nodes_;
  // Hosts keep their numbers when others are lost. A process that was not in the first round is on the only host.
  for (std::size_t rank = 0; !nodes_of_logical_ranks_.empty() && rank < nodes_.size(); ++rank)
    nodes_[rank] = nodes_of_logical_ranks_[info_.logical_ranks[rank]];
  num_nodes_ = std::max(num_nodes_, *std::max_element(nodes_.begin(), nodes_.end()) + 1);
}

int RendezvousRound::num_nodes() const { return num_nodes_; }

bool RendezvousRound::lacks_ranks() const {
  return static_cast<int>(info_.logical_ranks.size()) < run_.options.plan.world_size;
}

void RendezvousRound::open(const std::vector<std::vector<int>>& shards) {
  const TrainOptions& options = run_.options;
  const int rank = info_.self.rank, logical_rank = info_.logical_ranks[rank];
  if (options.plan.memory_limited && options.cluster &&
      logical_rank < static_cast<int>(options.cluster->devices.size())) {
    run_.device->set_memory_limit(options.cluster->devices[logical_rank].memory_limit_bytes,
                                  fmt::format("rank {}", rank));
  }
  open_cache(tensor_options(options.plan.dtype, *run_.device), shards);
  renew_session();
  checkpoints_ =
      std::make_unique<CheckpointManager>(options.checkpoints, checkpoint_folder_, info_.generation, *communicator_,
                                          run_.callbacks.note, std::move(given_up_checkpoints_));
}

void RendezvousRound::renew_session() {
  session_.reset();
  session_ = run_.training_task->make_session({.options = run_.options,
                                               .device = *run_.device,
                                               .communicator = *communicator_,
                                               .cache = cache_ ? &cache_->view() : nullptr,
                                               .logical_rank = info_.logical_ranks[info_.self.rank]});
}

CollectLayers RendezvousRound::collect_layers() {
  return [this](const std::vector<int>& folder_of_rank, const CheckpointWriter& writer) {
    return session_->layers_to_write(folder_of_rank, writer);
  };
}

void RendezvousRound::open_cache(const at::TensorOptions& compute, const std::vector<std::vector<int>>& shards) {
  const TrainOptions& options = run_.options;
  CacheLimits limits = options.plan.cache;
  if (options.emulation) {
    limits.memory_bytes /= options.emulation->shrink;
    limits.disk_bytes /= options.emulation->shrink;
  }
  const bool decides_later = options.freeze.rule != FreezePolicy::Rule::plan;
  const auto caches = [](const Phase& phase) { return phase.cache.on; };
  const bool planned = std::any_of(options.plan.phases.begin(), options.plan.phases.end(), caches);
  if (limits.memory_bytes + limits.disk_bytes == 0 || !(planned || decides_later)) return;
  const int node = std::min(nodes_[communicator_->rank()], static_cast<int>(shards.size()) - 1);
  const Samples& data = *run_.dataset.samples;
  std::vector<CacheableSample> samples(data.size());
  for (int sample = 0; sample < data.size(); ++sample)
    samples[sample] = {.tokens = data.tokens(sample), .key = data.key(sample)};
  cache_ = std::make_unique<NodeCache>(NodeCacheOptions{.limits = limits,
                                                        .disk_folder = options.cache_folder,
                                                        .node = node,
                                                        .samples = shards[node],
                                                        .hidden_size = run_.training_task->hidden_size(),
                                                        .compute = compute},
                                       std::move(samples), *communicator_, std::move(cache_));
}

void RendezvousRound::set_cache_boundary() {
  const Phase& phase = session_->phase();
  if (!phase.cache.on) return;
  RankSession& rank = session_->pipeline()->rank();
  cache_->set_boundary(phase.first_trainable_layer, rank.layers(), rank.parts_of_layers());
}

void RendezvousRound::close_connections() {
  if (communicator_) communicator_->close_connections();
  if (checkpoints_) {
    checkpoints_->give_up();
    given_up_checkpoints_ = std::move(checkpoints_);
  }
}

void RendezvousRound::close() {
  session_.reset();
  communicator_.reset();
}

Phase RendezvousRound::with_logical_ranks(const Phase& phase) const {
  return frostpipe::with_logical_ranks(phase, info_.logical_ranks, run_.options.plan.world_size);
}

std::optional<Phase> RendezvousRound::with_ranks(const Phase& phase) const {
  return with_current_ranks(phase, info_.logical_ranks, run_.options.plan.world_size);
}

}  // namespace frostpipe
