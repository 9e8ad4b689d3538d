#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Forward times of a model's blocks on a virtual device, which is 1 / share of a device of this type.
struct BlockTimes {
  std::string device_type;
  int share = 1;
  /// [block][b - 1] for batches of b requests, b = 1, 2, ...; each block has the same number, at least one.
  std::vector<std::vector<Nanoseconds>> forward_ns;
  /// [block][b - 1]: memory in use besides the weights while the block computes; empty if unknown.
  std::vector<std::vector<Bytes>> working_bytes;
  bool operator==(const BlockTimes&) const = default;
};

/// The profile of a model for the serving planner, as a chain of blocks. Block i consists of the layers [block_ends[i -
/// 1], block_ends[i]) of the model.
struct ServingProfile {
  std::string model_name;
  int tokens = 1;  // per request
  std::vector<int> block_ends;
  std::vector<Bytes> weight_bytes;  // per block; 0 = unknown
  /// Bytes of one request from block i to block i + 1; one fewer than there are blocks.
  std::vector<Bytes> cut_bytes;
  std::vector<BlockTimes> times;
  bool operator==(const ServingProfile&) const = default;
};

int num_blocks(const ServingProfile& profile);

/// Returns the largest batch size for which there are times.
int largest_batch(const BlockTimes& times);

/// Returns null if the type was not measured with that share.
const BlockTimes* find_times(const ServingProfile& profile, std::string_view device_type, int share);

/// Returns the shares with which the type was measured, ascending.
std::vector<int> measured_shares(const ServingProfile& profile, std::string_view device_type);

/// Makes a profile with one block per layer from measured profiles. Several profiles must be of one model on different
/// devices; a device type "1/2 L4" is a half of an L4. Times are those of a forward that saves nothing for a backward,
/// in `dtype` (those of a training layer if the profile's frozen layers have another dtype), for batches of 1 to
/// `max_requests`, as far as they were measured or can be interpolated (cost_of), and for requests of `tokens` tokens.
/// Throws InvalidInput if the profiles are of different models, have a device type twice, or have no measurement in
/// `dtype` or for a batch of one request.
ServingProfile serving_profile_of(const std::vector<Profile>& profiles, DType dtype, int tokens, int max_requests);

/// A time of the whole model that is shorter for a larger batch.
struct FallingTime {
  std::string device_type;
  int share = 1;
  int smaller = 1, larger = 2;  // requests per batch
  Nanoseconds smaller_ns = 0, larger_ns = 0;
  bool operator==(const FallingTime&) const = default;
};

/// Returns the largest fall of the whole model's time, relative to the smaller batch's, if it is more than a tenth.
/// Such a profile is mostly noise: it was measured on a machine that was busy with other work.
std::optional<FallingTime> find_falling_time(const ServingProfile& profile);

/// Lowers each time to the shortest of its block for as large a batch or a larger one, so that no time falls as the
/// batch grows: a batch can be computed as a larger one, filled up with anything. Noise only makes measured times
/// longer, so the shorter time is nearer to the truth than the longer one.
ServingProfile without_falling_times(ServingProfile profile);

/// Joins adjacent blocks: new block i ends with old block ends[i] - 1. `ends` must ascend to num_blocks. A joined
/// block's working bytes are the maximum of its parts.
ServingProfile join_blocks(const ServingProfile& profile, const std::vector<int>& ends);

/// Makes the profile of `heads` models that share the layers before `shared_layers` and all answer every request. Each
/// later layer takes `heads` times as long (one head after another, at most 10^15 ns), has `heads` times the weights
/// and sends `heads` times as many bytes; the output of the shared layers is kept until the last head has used it.
/// `layers` must have one block per layer. Requires 1 <= shared_layers < num_blocks.
ServingProfile with_heads(ServingProfile layers, int shared_layers, int heads);

}  // namespace frostpipe
