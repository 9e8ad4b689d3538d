#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace frostpipe {

/// Node of every rank where `num_logical_ranks` logical ranks (a multiple) form `num_nodes` contiguous groups of equal
/// size. `logical_ranks`: by rank. Whoever is left after a loss stays on its node, as on a host; a node may then be
/// without ranks.
std::vector<int> nodes_of_logical_ranks(std::span<const int> logical_ranks, int num_logical_ranks, int num_nodes);

/// Deals `samples` out, one to each shard in turn: a node's own part of the data.
std::vector<std::vector<int>> data_shards(const std::vector<int>& samples, int num_shards);

/// Where samples may change places for the sake of their lengths.
struct LengthGrouping {
  int global_batch_size = 1;
  int num_shards = 1;
  int num_mini_batches = 1;  // neighbouring ones
};

/// Groups samples by length: within every `num_mini_batches` neighbouring mini-batches, each shard's samples are dealt
/// out again, so that each mini-batch holds samples of similar length; which of them gets the short ones is random, a
/// function of seed and epoch. Mini-batches keep their sizes, and each shard its places in them.
void group_by_length(std::vector<int>& order, const LengthGrouping& grouping, std::uint64_t seed, int epoch,
                     const std::function<int(int sample)>& length_of);

/// Sorts each shard's part of each mini-batch by length, shorter samples first, equal ones as they stood. What a
/// mini-batch consists of stays: its micro-batches then hold samples of similar length.
void sort_by_length(std::vector<int>& order, int global_batch_size, int num_shards,
                    const std::function<int(int sample)>& length_of);

/// The order of all samples in one epoch (counted from 0): random in each shard; of every mini-batch the first part is
/// drawn from shard 0, the next from shard 1, and so on, as evenly as it goes, so that consecutive replicas find the
/// samples of their own node. With one shard: epoch_order.
std::vector<int> sharded_epoch_order(const std::vector<std::vector<int>>& shards, int global_batch_size,
                                     std::uint64_t seed, int epoch);

/// The order in which an epoch is trained: sharded_epoch_order, grouped by length within every `num_grouped`
/// mini-batches if that is more than one, and then sorted by length within each mini-batch.
std::vector<int> training_order(const std::vector<std::vector<int>>& shards, int global_batch_size, int num_grouped,
                                std::uint64_t seed, int epoch, const std::function<int(int sample)>& length_of);

}  // namespace frostpipe
