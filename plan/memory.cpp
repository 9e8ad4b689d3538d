#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/batch.h"
#include "profiles/error.h"

namespace frostpipe {

namespace {

class PositionMemory {
 public:
  PositionMemory(const Phase& phase, int micro_batch_size, std::string_view optimizer, std::string_view dtype,
                 const Profile& profile, const Cluster& cluster)
      : phase_(phase),
        micro_batch_size_(micro_batch_size),
        optimizer_(optimizer),
        dtype_(dtype),
        profile_(profile),
        cluster_(cluster) {}

  RankMemory of_position(int position, double peak_in_flight) const {
    const auto [begin, end] = phase_.partition.at(position);
    const Bytes value_bytes = bytes_per_value(dtype_);
    const int num_layers = static_cast<int>(profile_.model.layers.size());
    RankMemory memory;
    Bytes transient = 0;
    for (int layer = begin; layer < end; ++layer) {
      const Bytes weights = profile_.model.layers.at(layer).parameter_count * value_bytes / phase_.layout.tensor_parallel_size;
      const LayerCost cost = cost_at(layer, position);
      const bool trains = layer >= phase_.first_trainable_layer;
      memory.weights += weights;
      if (trains) {
        memory.gradients += weights;
        memory.optimizer_state += weights * optimizer_moments(optimizer_);
      }
      // A frozen layer keeps nothing, so its output is a transient too.
      transient = std::max(transient, cost.workspace_bytes + (trains ? 0 : cost.output_activation_bytes));
    }
    const auto [kept, computed_again] = stash_of_micro_batch({begin, end}, position);
    transient += computed_again;
    memory.stash = static_cast<Bytes>(peak_in_flight * static_cast<double>(kept));
    const Bytes received = output_bytes_of(begin - 1, position);
    const Bytes sent = end < num_layers ? output_bytes_of(end - 1, position) : 0;
    memory.workspace = transient + received + sent;
    if (position == 0 && phase_.cache.on) {
      const Bytes of_micro_batch = output_bytes_of(phase_.first_trainable_layer - 1, position);
      memory.cache = 2 * phase_.num_micro_batches * of_micro_batch;
    }
    return memory;
  }

 private:
  struct Stash {
    Bytes kept = 0;            // from forward until backward
    Bytes computed_again = 0;  // most that lives in a backward beside that
  };

  Stash stash_of_micro_batch(LayerRange stage, int position) const {
    const auto segments = checkpoint_segments(phase_.recompute, profile_.model, stage, phase_.first_trainable_layer);
    Stash stash;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto [begin, end] = segments[i].range;
      Bytes all = 0;
      for (int layer = begin; layer < end; ++layer) all += cost_at(layer, position).stashed_bytes;
      // The first layer that keeps something keeps its input as well, which nobody else on this rank does.
      if (i == 0) stash.kept += output_bytes_of(begin - 1, position);
      if (!segments[i].recomputed) {
        stash.kept += all;
        continue;
      }
      if (i + 1 < segments.size()) stash.kept += output_bytes_of(end - 1, position);  // the next segment's input
      stash.computed_again = std::max(stash.computed_again, all);
    }
    return stash;
  }

  LayerCost cost_at(int layer, int position) const {
    const int rank = rank_of(phase_.layout, position, 0);
    FROSTPIPE_CHECK(rank < static_cast<int>(cluster_.devices.size()), "a layout fits its cluster");
    return cost_of(profile_, {.layer = layer,
                              .device_type = cluster_.devices[rank].type,
                              .dtype = std::string(dtype_),
                              .micro_batch_size = micro_batch_size_,
                              .tokens = std::max(phase_.tokens, phase_.longest_tokens),
                              .tensor_parallel_size = phase_.layout.tensor_parallel_size});
  }

  /// 0 in front of the first layer: token ids are next to nothing.
  Bytes output_bytes_of(int layer, int position) const {
    return layer < 0 ? 0 : cost_at(layer, position).output_activation_bytes;
  }

  const Phase& phase_;
  int micro_batch_size_;
  std::string_view optimizer_, dtype_;
  const Profile& profile_;
  const Cluster& cluster_;
};

}  // namespace

Bytes bytes_per_value(std::string_view dtype) {
  if (dtype == "float32") return 4;
  if (dtype == "float64") return 8;
  if (dtype == "bfloat16") return 2;
  throw InvalidInput("dtype", "must be float32, float64 or bfloat16", fmt::format("\"{}\"", dtype));
}

int optimizer_moments(std::string_view optimizer) {
  if (optimizer == "adamw") return 2;
  if (optimizer == "sgd") return 0;
  throw InvalidInput("optimizer", "must be adamw or sgd", fmt::format("\"{}\"", optimizer));
}

std::vector<double> peak_in_flight(const Schedule& schedule, double weight_gradient_share) {
  std::vector<int> stages_on(num_positions(schedule), 0);
  for (const int position : schedule.position_of_stage) ++stages_on.at(position);
  std::vector<double> peaks;
  for (int position = 0; position < num_positions(schedule); ++position) {
    int before_backward = 0, before_weights = 0;  // in chunks
    double peak = 0;
    for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
      if (part->empty()) continue;
      for (const auto& action : (*part)[position]) {
        if (action.stage < schedule.first_trainable_stage) continue;
        before_backward += action.kind == ActionKind::forward;
        before_backward -= action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
        before_weights += (action.kind == ActionKind::input_gradient) - (action.kind == ActionKind::weight_gradient);
        peak = std::max(peak, before_backward + weight_gradient_share * before_weights);
      }
    }
    peaks.push_back(peak / (std::max(1, stages_on[position]) * schedule.num_slices));
  }
  return peaks;
}

std::vector<RankMemory> memory_of(const Phase& phase, int global_batch_size, std::string_view optimizer,
                                  std::string_view dtype, const Profile& profile, const Cluster& cluster) {
  const SampleRange largest =
      micro_batch_samples(global_batch_size, phase.layout.data_parallel_size, phase.num_micro_batches, 0, 0);
  const PositionMemory memory(phase, largest.end - largest.begin, optimizer, dtype, profile, cluster);
  // Messages keep nothing in flight: the schedule need not be lowered.
  const auto peaks = peak_in_flight(build_schedule(phase.schedule, {.pipeline_parallel_size = static_cast<int>(phase.partition.size()),
                                                                    .num_micro_batches = phase.num_micro_batches,
                                                                    .first_trainable_stage = first_trainable_stage(phase.partition, phase.first_trainable_layer)}));
  std::vector<RankMemory> positions;
  for (int position = 0; position < static_cast<int>(peaks.size()); ++position)
    positions.push_back(memory.of_position(position, peaks[position]));
  return positions;
}

std::string what_does_not_fit(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster) {
  for (int position = 0; position < static_cast<int>(memory.size()); ++position) {
    const RankMemory& need = memory[position];
    for (const int rank : replicas_of(phase.layout, position)) {
      const auto limit = cluster.devices.at(rank).memory_limit_bytes;
      if (!limit || need.total() <= *limit) continue;
      return fmt::format(
          "stage {} needs {} (weights {}, gradients {}, optimizer {}, stash {}, workspace {}), rank {} has {}",
          position, format_bytes(need.total()), format_bytes(need.weights), format_bytes(need.gradients),
          format_bytes(need.optimizer_state), format_bytes(need.stash), format_bytes(need.workspace), rank,
          format_bytes(*limit));
    }
  }
  return "";
}

}  // namespace frostpipe
