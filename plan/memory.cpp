#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/batch.h"
#include "profiles/error.h"

namespace frostpipe {

std::vector<double> peak_in_flight(const Schedule& schedule, double weight_gradient_share) {
  std::vector<int> stages_on(num_pipeline_ranks(schedule), 0);
  for (const int pipeline_rank : schedule.pipeline_rank_of_stage) ++stages_on.at(pipeline_rank);
  std::vector<double> peaks;
  for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule); ++pipeline_rank) {
    int before_backward = 0, before_weights = 0;  // in chunks
    double peak = 0;
    for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
      if (part->empty()) continue;
      for (const auto& action : (*part)[pipeline_rank]) {
        if (action.stage < schedule.first_trainable_stage) continue;
        before_backward += action.kind == ActionKind::forward;
        before_backward -= action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
        before_weights += (action.kind == ActionKind::input_gradient) - (action.kind == ActionKind::weight_gradient);
        peak = std::max(peak, before_backward + weight_gradient_share * before_weights);
      }
    }
    peaks.push_back(peak / (std::max(1, stages_on[pipeline_rank]) * schedule.num_slices));
  }
  return peaks;
}

std::int64_t largest_micro_batch_tokens(const ParallelLayout& layout, int num_micro_batches, int global_batch_size,
                                        int num_nodes, const Workload& workload) {
  if (!workload.tokens_deviation) return 0;
  const int num_parts = num_nodes > 0 && layout.data_parallel_size % num_nodes == 0 ? num_nodes : 1;
  const int num_samples = (global_batch_size + num_parts - 1) / num_parts;
  const std::int64_t tokens = longest_mini_batch_tokens(
      num_samples,
      {.mean = workload.tokens, .deviation = *workload.tokens_deviation, .longest = workload.longest_tokens});
  return longest_piece_tokens(num_samples, tokens, workload.longest_tokens,
                              layout.data_parallel_size / num_parts * num_micro_batches);
}

MicroBatchSize planned_micro_batch(const Phase& phase, int global_batch_size) {
  const SampleRange largest =
      micro_batch_samples(global_batch_size, phase.layout.data_parallel_size, phase.num_micro_batches, 0, 0);
  const std::int64_t samples = largest.end - largest.begin;
  std::int64_t tokens = phase.longest_tokens;
  if (phase.largest_micro_batch_tokens > 0)
    tokens = std::min(tokens, (phase.largest_micro_batch_tokens + samples - 1) / samples);
  return {.samples = static_cast<int>(samples), .tokens = std::max(phase.tokens, static_cast<int>(tokens))};
}

StageMemory::StageMemory(const Phase& unpartitioned, const Profile& profile, Optimizer optimizer, DType dtype)
    : unpartitioned_(unpartitioned),
      model_(profile.model),
      kept_bytes_(kept_bytes_per_value(dtype)),
      rounded_bytes_(dtype == DType::kBFloat16 ? bytes_per_value(dtype) : 0),
      frozen_rounded_bytes_(profile.frozen_dtype ? bytes_per_value(*profile.frozen_dtype) : rounded_bytes_),
      moments_(optimizer_moments(optimizer)),
      exchange_(tied_gradient_bytes(unpartitioned, profile.model, dtype)),
      splits_backward_(splits_backward(unpartitioned.schedule)) {
  for (const Layer& layer : profile.model.layers)
    recomputed_.push_back(is_recomputed(unpartitioned.recompute, layer.kind));
}

Bytes tied_gradient_bytes(const Phase& phase, const Model& model, DType dtype) {
  if (phase.layout.pipeline_parallel_size < 2 || phase.first_trainable_layer > 0) return 0;
  return model.tied_parameter_count * kept_bytes_per_value(dtype) / phase.layout.tensor_parallel_size;
}

Bytes reduced_gradient_bytes(const Phase& phase, const Model& model, int layer, int global_batch_size, DType dtype) {
  return touched_parameter_count(model, layer, std::int64_t{global_batch_size} * phase.tokens) *
         kept_bytes_per_value(dtype) / phase.layout.tensor_parallel_size;
}

RankMemory StageMemory::of(LayerRange stage, std::span<const InFlight> peaks, std::span<const LayerCost> layers) const {
  RankMemory memory;
  Bytes transient = 0;
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    const Bytes count = model_.layers.at(layer).parameter_count,
                weights = count * kept_bytes_ / unpartitioned_.layout.tensor_parallel_size;
    const LayerCost& cost = layers[layer];
    const bool trains = layer >= unpartitioned_.first_trainable_layer;
    const Bytes rounded = count * (trains ? rounded_bytes_ : frozen_rounded_bytes_);
    memory.weights += weights + rounded / unpartitioned_.layout.tensor_parallel_size;
    if (trains) {
      memory.gradients += weights;
      memory.optimizer_state += weights * moments_;
    }
    // A frozen layer keeps nothing, so its output is a transient too.
    transient = std::max(transient, cost.workspace_bytes + (trains ? 0 : cost.output_activation_bytes));
  }
  // 0 in front of the first layer: token ids are next to nothing.
  const auto output_bytes_of = [&](int layer) { return layer < 0 ? 0 : layers[layer].output_activation_bytes; };
  const SavedActivations saved = saved_activations_of_micro_batch(stage, layers);
  transient += saved.computed_again;
  memory.until_backward = saved.kept;
  memory.until_weights = saved.until_weights;
  for (const InFlight& peak : peaks)
    memory.saved_activations = std::max(memory.saved_activations,
                                        peak.before_backward * saved.kept + peak.before_weights * saved.until_weights);
  const Bytes sent = stage.end < static_cast<int>(model_.layers.size()) ? output_bytes_of(stage.end - 1) : 0;
  memory.workspace = transient + output_bytes_of(stage.begin - 1) + sent;
  if (stage.begin == 0 || stage.end == static_cast<int>(model_.layers.size())) memory.exchange = exchange_;
  if (stage.begin == 0 && unpartitioned_.cache.on)
    memory.cache = 2 * unpartitioned_.num_micro_batches * output_bytes_of(unpartitioned_.first_trainable_layer - 1);
  return memory;
}

StageMemory::SavedActivations StageMemory::saved_activations_of_micro_batch(LayerRange stage,
                                                                            std::span<const LayerCost> layers) const {
  const auto output_bytes_of = [&](int layer) { return layer < 0 ? 0 : layers[layer].output_activation_bytes; };
  const int begin = std::max(stage.begin, unpartitioned_.first_trainable_layer);
  SavedActivations saved_activations;
  if (begin >= stage.end) return saved_activations;
  // The first layer that keeps something keeps its input as well, which nobody else on this rank does.
  saved_activations.kept = output_bytes_of(begin - 1);
  Bytes segment = 0, split = 0;
  for (int layer = begin; layer < stage.end; ++layer) {
    segment += layers[layer].saved_activation_bytes;
    if (splits_backward_)
      split += split_backward_of(layers[layer], layer > unpartitioned_.first_trainable_layer).kept_bytes;
    const bool again = recomputed_[layer];
    if (layer + 1 < stage.end && joins_segment(unpartitioned_.recompute, recomputed_[layer + 1], again)) continue;
    Bytes kept = segment;
    if (again) kept = layer + 1 < stage.end ? output_bytes_of(layer) : 0;  // the next segment's input
    saved_activations.kept += kept;
    saved_activations.until_weights += split;
    // I goes from the last segment to the first: each leaves what W needs in place of what was kept for it.
    Bytes& most = saved_activations.computed_again;
    most = std::max(most + (splits_backward_ ? split - kept : 0), again ? segment : 0);
    segment = split = 0;
  }
  return saved_activations;
}

std::vector<InFlight> peaks_of(const std::vector<Action>& list) {
  std::set<InFlight> moments;
  InFlight now;
  bool has_backward = false;
  for (const Action& action : list) {
    const ActionKind kind = action.kind;
    has_backward = has_backward || kind == ActionKind::backward || kind == ActionKind::input_gradient;
    now.before_backward += kind == ActionKind::forward;
    now.before_backward -= kind == ActionKind::backward || kind == ActionKind::input_gradient;
    now.before_weights += (kind == ActionKind::input_gradient) - (kind == ActionKind::weight_gradient);
    moments.insert(now);
  }
  std::vector<InFlight> peaks;
  if (!has_backward) return peaks;
  int most_before_weights = -1;
  for (auto moment = moments.rbegin(); moment != moments.rend(); ++moment) {
    if (moment->before_weights <= most_before_weights) continue;
    most_before_weights = moment->before_weights;
    peaks.push_back(*moment);
  }
  std::reverse(peaks.begin(), peaks.end());
  return peaks;
}

std::vector<std::vector<InFlight>> peaks_in_flight_of(std::string_view schedule, int num_pipeline_ranks,
                                                      int num_micro_batches, int first_trainable_stage) {
  // All but GPipe have their peak before or after their steady part, which more micro-batches only lengthen. Messages
  // keep nothing in flight: the schedule need not be lowered.
  const int m = schedule == "GPipe" ? num_micro_batches : std::min(num_micro_batches, 4 * num_pipeline_ranks);
  const Schedule built = build_schedule(schedule, {.pipeline_parallel_size = num_pipeline_ranks,
                                                   .num_micro_batches = m,
                                                   .first_trainable_stage = first_trainable_stage});
  std::vector<std::vector<InFlight>> peaks;
  for (const std::vector<Action>& list : built.body) peaks.push_back(peaks_of(list));
  return peaks;
}

std::vector<RankMemory> memory_of(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                  const Cluster& cluster) {
  const MicroBatchSize largest = planned_micro_batch(phase, settings.global_batch_size);
  const auto peaks =
      peaks_in_flight_of(phase.schedule, static_cast<int>(phase.partition.size()), phase.num_micro_batches,
                         first_trainable_stage(phase.partition, phase.first_trainable_layer));
  const StageMemory memory(phase, profile, settings.optimizer, settings.dtype);
  std::map<std::string, std::vector<LayerCost>> layers_on;  // by device type
  std::vector<RankMemory> pipeline_ranks;
  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(peaks.size()); ++pipeline_rank) {
    const int rank = rank_of(phase.layout, pipeline_rank, 0);
    FROSTPIPE_CHECK(rank < static_cast<int>(cluster.devices.size()), "a layout fits its cluster");
    const std::string& device_type = cluster.devices[rank].type;
    auto& layers = layers_on[device_type];
    if (layers.empty()) layers.resize(profile.model.layers.size());
    const LayerRange stage = phase.partition.at(pipeline_rank);
    const int needed_to =
        pipeline_rank == 0 && phase.cache.on ? std::max(stage.end, phase.first_trainable_layer) : stage.end;
    for (int layer = std::max(0, stage.begin - 1); layer < needed_to; ++layer) {
      layers[layer] = cost_of(profile, {.layer = layer,
                                        .device_type = device_type,
                                        .dtype = settings.dtype,
                                        .micro_batch_size = largest.samples,
                                        .tokens = largest.tokens,
                                        .tensor_parallel_size = phase.layout.tensor_parallel_size});
    }
    pipeline_ranks.push_back(memory.of(stage, peaks[pipeline_rank], layers));
  }
  return pipeline_ranks;
}

std::string what_does_not_fit(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster) {
  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(memory.size()); ++pipeline_rank) {
    const RankMemory& need = memory[pipeline_rank];
    for (const int rank : replicas_of(phase.layout, pipeline_rank)) {
      const auto limit = cluster.devices.at(rank).memory_limit_bytes;
      if (!limit || need.total() <= *limit) continue;
      return fmt::format(
          "stage {} needs {} (weights {}, gradients {}, optimizer {}, saved activations {}, workspace {}{}), rank {} "
          "has {}",
          pipeline_rank, format_bytes(need.total()), format_bytes(need.weights), format_bytes(need.gradients),
          format_bytes(need.optimizer_state), format_bytes(need.saved_activations), format_bytes(need.workspace),
          need.exchange > 0 ? fmt::format("; or exchange {}", format_bytes(need.exchange)) : "", rank,
          format_bytes(*limit));
    }
  }
  return "";
}

}  // namespace frostpipe
