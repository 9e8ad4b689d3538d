#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Forward times of a model's blocks on a virtual device: 1 / share of a device of this type.
struct BlockTimes {
  std::string device_type;
  int share = 1;
  /// [block][b - 1]: of a batch of b requests, for b = 1, 2, ...; at least 1 each, and as many of every block.
  std::vector<std::vector<Nanoseconds>> forward_ns;
  /// [block][b - 1]: live beside the weights while the block computes; empty = not known.
  std::vector<std::vector<Bytes>> working_bytes;
  bool operator==(const BlockTimes&) const = default;
};

/// What a planner of serving knows of a model: a chain of blocks. Block i is the layers [block_ends[i - 1],
/// block_ends[i]) of the model.
struct ServingProfile {
  std::string model_name;
  int tokens = 1;  // of every request
  std::vector<int> block_ends;
  std::vector<Bytes> weight_bytes;  // of a block; 0 = not known
  /// [i]: of one request from block i to block i + 1, one less than there are blocks.
  std::vector<Bytes> cut_bytes;
  std::vector<BlockTimes> times;
  bool operator==(const ServingProfile&) const = default;
};

int num_blocks(const ServingProfile& profile);

/// Largest batch size with times on every one of them.
int largest_batch(const BlockTimes& times);

/// None where the type was not measured with that share.
const BlockTimes* find_times(const ServingProfile& profile, std::string_view device_type, int share);

/// Shares that the type was measured with, ascending.
std::vector<int> measured_shares(const ServingProfile& profile, std::string_view device_type);

/// Every layer of measured profiles as a block. Several profiles are of one model on unequal devices; a device type
/// "1/2 L4" is a half of an L4. Times are those of a forward that keeps nothing for a backward, in `dtype` (a training
/// layer's forward where the profile's frozen layers computed in another type), for batches of 1 to `most_requests` as
/// far as they were measured or can be interpolated (cost_of), of requests of `tokens` tokens. Throws InvalidInput if
/// the profiles are of different models, of one device type twice, or of nothing in `dtype`.
ServingProfile serving_profile_of(const std::vector<Profile>& profiles, DType dtype, int tokens, int most_requests);

/// The same with neighbouring blocks joined: new block i ends with old block ends[i] - 1. Requires that `ends` ascend
/// to num_blocks. A joined block's working bytes are the most of its parts.
ServingProfile join_blocks(const ServingProfile& profile, const std::vector<int>& ends);

/// Of `heads` models that share the layers before `shared_layers`, where every request is answered by all of them.
/// Behind those, each layer takes `heads` times as long, one head after the other, but at most 10^15 ns, holds as many
/// weights and hands on as many activations; what the shared layers gave stays until the last head has had it.
/// `layers`: every layer a block. Requires 1 <= shared_layers < num_blocks.
ServingProfile with_heads(ServingProfile layers, int shared_layers, int heads);

}  // namespace frostpipe
