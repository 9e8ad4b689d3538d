#pragma once
// Machines that hold a language model's layers and generate text token by token.
#include <cstdint>
#include <utility>
#include <vector>

#include "profiles/units.h"

namespace frostpipe {

/// What a batch takes, by its size. Sizes ascend, times do not fall.
struct BatchTimes {
  std::vector<std::pair<int, Nanoseconds>> points;  // at least one

  /// On straight lines between the points; below the first as there, beyond the last in proportion to the size.
  Nanoseconds at(int size) const;
  bool operator==(const BatchTimes&) const = default;
};

/// The non-falling times nearest to what was measured (least squares, all points of equal weight: neighbours that fall
/// become their mean). Requires ascending sizes.
BatchTimes without_falls(std::vector<std::pair<int, Nanoseconds>> measured);

/// Holds layers [first_layer, end_layer).
struct GenerationMachine {
  int first_layer = 0, end_layer = 0;
  BatchTimes prompt_ns, decode_ns;  // of one layer: by the tokens of all prompts of a batch; by requests
  double tokens_per_second = 0;   // as is expected of it, prompts and generated ones together: by it flow weighs paths
  std::int64_t cache_tokens = 0;  // that the caches of each of its layers hold
  int largest_prompt_batch = 1, largest_decode_batch = 1;  // requests
  double card_bytes_per_second = 0;                        // each way
  double copy_seconds_per_byte = 0;                        // of the activations of tokens that come in, also from the
                                                           // coordinator: to be batched, to the GPU

  int num_layers() const { return end_layer - first_layer; }
};

struct GenerationLink {
  Nanoseconds latency_ns = 0;
  double bytes_per_second = 0;
};

/// A request goes from the coordinator through machines that together hold all layers, and back, once for its prompt
/// and once for every further token. A machine goes on with the layer where the one before it ended, and to its own
/// end.
struct GenerationCluster {
  int num_layers = 0;
  bool joins_in_middles = true;  // a machine can begin in the middle of what it holds
  std::vector<GenerationMachine> machines;
  Bytes token_bytes = 4;       // between coordinator and machines, per token
  Bytes activation_bytes = 0;  // between machines, per token
  /// [from][to]; the coordinator's index is the last one, and its card is never full.
  std::vector<std::vector<GenerationLink>> links;

  int coordinator() const { return static_cast<int>(machines.size()); }
  /// Of a message of so many tokens.
  Bytes message_bytes(int from, int to, std::int64_t tokens) const {
    return tokens * (from == coordinator() || to == coordinator() ? token_bytes : activation_bytes);
  }
};

/// Where a request may go next, ascending: machines that hold the layer after the last one of `from` (from the
/// coordinator: layer 0), or from machines with the last layer the coordinator alone.
std::vector<std::vector<int>> successors(const GenerationCluster& cluster);

/// Whether some machines hold all layers, so that a request can go through.
bool has_way(const GenerationCluster& cluster);

}  // namespace frostpipe
