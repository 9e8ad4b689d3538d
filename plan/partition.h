#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Half-open range of layers [begin, end).
struct LayerRange {
  int begin = 0;
  int end = 0;
  bool operator==(const LayerRange&) const = default;
};

/// Assigns layers to stages. Stages are contiguous, in order, never empty, and together cover all layers.
using Partition = std::vector<LayerRange>;

/// Throws InvalidInput with `place` unless `partition` covers [0, num_layers) exactly once, in order, without empty
/// stages.
void validate(const Partition& partition, int num_layers, std::string_view place);

int stage_of_layer(const Partition& partition, int layer);

/// Returns the stage of `first_trainable_layer`, the first one with a trainable layer.
int first_trainable_stage(const Partition& partition, int first_trainable_layer);

/// The algorithm that cuts layers into stages.
enum class Partitioner {
  exact,                   // makes the slowest stage as fast as possible; the default
  pipetransformer_greedy,  // balances parameters, as in the published code of PipeTransformer
};
/// Returns the word of options and files, such as "pipetransformer-greedy".
std::string_view to_string(Partitioner partitioner);
/// Throws InvalidInput ("PLACE: must be exact or pipetransformer-greedy, is ...").
void parse_text(std::string_view text, const std::string& place, Partitioner& partitioner);

/// Formats "[0,5) [5,14)".
std::string to_string(const Partition& partition);

/// Formats a partition for the user. Of more than eight stages it shows the first three and the last, "[0,5) [5,9)
/// [9,14) ... [90,96)".
std::string to_brief_string(const Partition& partition);

}  // namespace frostpipe
