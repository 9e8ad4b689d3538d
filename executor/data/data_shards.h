#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace frostpipe {

/// Returns the node of every rank, in the order of `logical_ranks`, which has each rank's logical rank. The logical
/// ranks 0 ... `num_logical_ranks` - 1 (a multiple of `num_nodes`) form `num_nodes` contiguous groups of equal size,
/// one per node. Ranks stay on their nodes after a loss, so a node may be without ranks.
std::vector<int> nodes_of_logical_ranks(std::span<const int> logical_ranks, int num_logical_ranks, int num_nodes);

/// Distributes `samples` to the shards in turn. A shard is the part of the data that belongs to a node.
std::vector<std::vector<int>> data_shards(const std::vector<int>& samples, int num_shards);

/// The parts of the data within which group_by_length() may exchange samples.
struct LengthGrouping {
  int global_batch_size = 1;
  int num_shards = 1;
  int num_mini_batches = 1;  // number of consecutive mini-batches
};

/// Groups samples by length: within every `num_mini_batches` consecutive mini-batches, each shard's samples are
/// redistributed so that each mini-batch has samples of similar length. Seed and epoch determine, at random, which
/// mini-batch gets the shortest samples. Sizes of mini-batches and the positions of each shard in them do not change.
void group_by_length(std::vector<int>& order, const LengthGrouping& grouping, std::uint64_t seed, int epoch,
                     const std::function<int(int sample)>& length_of);

/// Sorts each shard's part of each mini-batch by length, the shortest first (stable). Each mini-batch keeps its
/// samples; its micro-batches then have samples of similar length.
void sort_by_length(std::vector<int>& order, int global_batch_size, int num_shards,
                    const std::function<int(int sample)>& length_of);

/// Returns the order of all samples in one epoch (counted from 0). It is random in each shard. The first part of every
/// mini-batch comes from shard 0, the next from shard 1, and so on, as evenly as possible, so that consecutive replicas
/// find the samples of their own node; samples that an exhausted shard lacks come from the others. With one shard, its
/// samples are in epoch_order().
std::vector<int> sharded_epoch_order(const std::vector<std::vector<int>>& shards, int global_batch_size,
                                     std::uint64_t seed, int epoch);

/// Returns the order of training in one epoch: sharded_epoch_order(), grouped by length within every `num_grouped`
/// mini-batches if that is more than one, then sorted by length within each mini-batch.
std::vector<int> training_order(const std::vector<std::vector<int>>& shards, int global_batch_size, int num_grouped,
                                std::uint64_t seed, int epoch, const std::function<int(int sample)>& length_of);

}  // namespace frostpipe
