#include "plan/reconfiguration.h"

#include <algorithm>
#include <map>

#include "plan/stages.h"

namespace frostpipe {

namespace {

struct Holder {
  int rank = 0;
  int tensor = 0;
  auto operator<=>(const Holder&) const = default;
};

/// Returns the ranks that hold a part of `layer`, ascending.
std::vector<Holder> holders_of(const Phase& phase, int layer) {
  const int pipeline_rank = pipeline_rank_of(phase, stage_of_layer(phase.partition, layer));
  std::vector<Holder> holders;
  for (int tensor = 0; tensor < phase.layout.tensor_parallel_size; ++tensor)
    for (const int rank : replicas_of(phase.layout, pipeline_rank, tensor)) holders.push_back({rank, tensor});
  std::sort(holders.begin(), holders.end());
  return holders;
}

/// Process groups depend on which ranks exchange messages and on which ranks contribute to the gradient norm.
bool needs_other_groups(const Phase& before, const Phase& after) {
  return before.layout != after.layout || pipeline_ranks_of_stages(before) != pipeline_ranks_of_stages(after) ||
         trains(before) != trains(after);
}

/// Collects the moves layer by layer and spreads them over the sources.
class LayerMoves {
 public:
  LayerMoves(const Phase& before, const Phase& after, const Model& model, Bytes value_bytes, int num_moments)
      : before_(before), after_(after), model_(model), value_bytes_(value_bytes), num_moments_(num_moments) {}

  void add(int layer, std::vector<TensorMove>& moves) {
    const Layer& described = model_.layers[layer];
    const std::int64_t shared_count = held_parameter_count(model_, layer) - described.whole_parameter_count;
    const bool with_moments = layer >= after_.first_trainable_layer && num_moments_ > 0;
    const Bytes bytes_per_parameter = value_bytes_ * (1 + (with_moments ? num_moments_ : 0));
    const std::vector<Holder> givers = holders_of(before_, layer);
    for (const Holder& taker : holders_of(after_, layer)) {
      const auto held =
          std::find_if(givers.begin(), givers.end(), [&](const Holder& h) { return h.rank == taker.rank; });
      bool with_whole = held == givers.end();
      for (int tensor = 0; tensor < before_.layout.tensor_parallel_size; ++tensor) {
        if (held != givers.end() && held->tensor == tensor) continue;
        const auto part = common_part(slice_of(tensor, before_.layout.tensor_parallel_size),
                                      slice_of(taker.tensor, after_.layout.tensor_parallel_size));
        if (!part || (shared_count == 0 && !with_whole)) continue;
        const Bytes bytes = bytes_per_parameter * (part->end_in(shared_count) - part->begin_in(shared_count) +
                                                   (with_whole ? described.whole_parameter_count : 0));
        moves.push_back({.layer = layer,
                         .from_rank = next_source(givers, tensor, bytes),
                         .to_rank = taker.rank,
                         .with_moments = with_moments,
                         .bytes = bytes,
                         .slice = *part,
                         .with_whole = with_whole});
        with_whole = false;
      }
    }
  }

 private:
  /// Returns the holder with this tensor rank that has sent the least so far; ties go to the lowest rank.
  int next_source(const std::vector<Holder>& holders, int tensor, Bytes bytes) {
    const Holder* source = nullptr;
    for (const Holder& holder : holders)
      if (holder.tensor == tensor && (!source || sent_by_[holder.rank] < sent_by_[source->rank])) source = &holder;
    sent_by_[source->rank] += bytes;
    return source->rank;
  }

  const Phase& before_;
  const Phase& after_;
  const Model& model_;
  Bytes value_bytes_;
  int num_moments_;
  std::map<int, Bytes> sent_by_;
};

}  // namespace

Reconfiguration diff(const Phase& before, const Phase& after, const Model& model, Optimizer optimizer, DType dtype) {
  Reconfiguration change{.first_trainable_before = before.first_trainable_layer,
                         .first_trainable_after = after.first_trainable_layer,
                         .newly_frozen = {},
                         .moves = {},
                         .regroup = needs_other_groups(before, after)};
  for (int layer = before.first_trainable_layer; layer < after.first_trainable_layer; ++layer)
    change.newly_frozen.push_back(layer);

  LayerMoves moves(before, after, model, kept_bytes_per_value(dtype), optimizer_moments(optimizer));
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) moves.add(layer, change.moves);
  return change;
}

bool keeps_weight_versions(const Phase& before, const Phase& after) {
  return before.layout == after.layout && have_same_pipeline(before, after) &&
         before.first_trainable_layer == after.first_trainable_layer;
}

}  // namespace frostpipe
