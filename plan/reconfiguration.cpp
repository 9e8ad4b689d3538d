#include "plan/reconfiguration.h"

#include <algorithm>
#include <map>

#include "plan/memory.h"
#include "plan/stages.h"

namespace frostpipe {

namespace {

/// Ranks that hold `layer`, ascending.
std::vector<int> holders_of(const Phase& phase, int layer) {
  auto ranks = replicas_of_layer(phase, layer);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> pipeline_ranks_of_stages(const Phase& phase) {
  std::vector<int> ranks;
  for (int stage = 0; stage < num_stages(phase); ++stage) ranks.push_back(pipeline_rank_of(phase, stage));
  return ranks;
}

/// The groups depend on who sends to whom, and on who has a part in the gradient norm.
bool needs_other_groups(const Phase& before, const Phase& after) {
  return before.layout != after.layout || pipeline_ranks_of_stages(before) != pipeline_ranks_of_stages(after) ||
         trains(before) != trains(after);
}

}  // namespace

Reconfiguration diff(const Phase& before, const Phase& after, const Model& model, Optimizer optimizer, DType dtype) {
  Reconfiguration change{.first_trainable_before = before.first_trainable_layer,
                         .first_trainable_after = after.first_trainable_layer,
                         .newly_frozen = {},
                         .moves = {},
                         .regroup = needs_other_groups(before, after)};
  for (int layer = before.first_trainable_layer; layer < after.first_trainable_layer; ++layer)
    change.newly_frozen.push_back(layer);

  std::map<int, Bytes> sent_by;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const auto sources = holders_of(before, layer);
    const bool with_moments = layer >= after.first_trainable_layer && optimizer_moments(optimizer) > 0;
    const Bytes bytes = model.layers[layer].parameter_count * kept_bytes_per_value(dtype) *
                        (1 + (with_moments ? optimizer_moments(optimizer) : 0)) / after.layout.tensor_parallel_size;
    for (const int rank : holders_of(after, layer)) {
      if (std::binary_search(sources.begin(), sources.end(), rank)) continue;
      // The source that has sent least so far; of equals the lowest rank.
      const int source =
          *std::min_element(sources.begin(), sources.end(), [&](int a, int b) { return sent_by[a] < sent_by[b]; });
      sent_by[source] += bytes;
      change.moves.push_back(
          {.layer = layer, .from_rank = source, .to_rank = rank, .with_moments = with_moments, .bytes = bytes});
    }
  }
  return change;
}

bool keeps_weight_versions(const Phase& before, const Phase& after) {
  return before.layout == after.layout && have_same_pipeline(before, after) &&
         before.first_trainable_layer == after.first_trainable_layer;
}

}  // namespace frostpipe
