#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/batch.h"
#include "plan/reroute.h"
#include "plan/schedule_rows.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "profiles/error.h"

namespace frostpipe {

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
      splits_backward_(splits_backward(unpartitioned)),
      keeps_older_weights_(weight_delay(unpartitioned) > 0) {
  for (const Layer& layer : profile.model.layers)
    recomputed_.push_back(is_recomputed(unpartitioned.recompute, layer.kind));
}

Bytes tied_gradient_bytes(const Phase& phase, const Model& model, DType dtype) {
  const bool ends_are_on_one_rank = pipeline_rank_of(phase, 0) == pipeline_rank_of(phase, num_stages(phase) - 1);
  if (ends_are_on_one_rank || phase.first_trainable_layer > 0) return 0;
  const Layer& embedding = model.layers.front();
  const Bytes bytes = kept_bytes_per_value(dtype);
  const std::int64_t tied = model.tied_parameter_count, others = embedding.parameter_count - tied,
                     whole = std::clamp<std::int64_t>(embedding.whole_parameter_count - others, 0, tied);
  return of_tensor_rank(tied * bytes, whole * bytes, phase.layout.tensor_parallel_size);
}

Bytes reduced_gradient_bytes(const Phase& phase, const Model& model, int layer, int global_batch_size, DType dtype) {
  const Bytes bytes = kept_bytes_per_value(dtype);
  const std::int64_t count = touched_parameter_count(model, layer, std::int64_t{global_batch_size} * phase.tokens),
                     whole = std::min(count, model.layers.at(layer).whole_parameter_count);
  return of_tensor_rank(count * bytes, whole * bytes, phase.layout.tensor_parallel_size);
}

Bytes StageMemory::of_all_tokens(Bytes output) const {
  const ParallelLayout& layout = unpartitioned_.layout;
  return layout.sequence_parallel ? output * layout.tensor_parallel_size : output;
}

RankMemory StageMemory::of(LayerRange stage, std::span<const LayerCost> layers, bool hands_on) const {
  RankMemory memory;
  Bytes transient = 0;
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    const Layer& described = model_.layers.at(layer);
    const auto held = [&](Bytes per_parameter) {
      return of_tensor_rank(held_parameter_count(model_, layer) * per_parameter,
                            described.whole_parameter_count * per_parameter,
                            unpartitioned_.layout.tensor_parallel_size);
    };
    const LayerCost& cost = layers[layer];
    const bool trains = layer >= unpartitioned_.first_trainable_layer;
    const Bytes weights = held(kept_bytes_);
    const Bytes version = weights + held(trains ? rounded_bytes_ : frozen_rounded_bytes_);
    memory.weights += version;
    if (trains) {
      memory.older_weights += keeps_older_weights_ ? version : 0;
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
  const Bytes sent = stage.end < static_cast<int>(model_.layers.size()) ? output_bytes_of(stage.end - 1) : 0;
  memory.workspace = transient + output_bytes_of(stage.begin - 1) + sent;
  if (stage.end <= unpartitioned_.first_trainable_layer && !hands_on)
    memory.sent_ahead = unpartitioned_.num_micro_batches * sent;
  if (stage.begin == 0 || stage.end == static_cast<int>(model_.layers.size())) memory.exchange = exchange_;
  // Of the next iteration, whose forwards have begun where iterations overlap.
  if (stage.begin == 0 && keeps_older_weights_ && exchange_ > 0)
    memory.exchange += (unpartitioned_.layout.pipeline_parallel_size - 1) * memory.until_backward;
  if (stage.begin == 0 && unpartitioned_.cache.on)
    memory.cache =
        2 * unpartitioned_.num_micro_batches * of_all_tokens(output_bytes_of(unpartitioned_.first_trainable_layer - 1));
  if (num_slices(unpartitioned_) > 1) cut_into_slices(memory, stage, layers);
  return memory;
}

void StageMemory::cut_into_slices(RankMemory& memory, LayerRange stage, std::span<const LayerCost> layers) const {
  const std::int64_t longest = longest_sample(unpartitioned_);
  const std::vector<std::int64_t> tokens = tokens_of_slices(unpartitioned_, longest);
  memory.workspace = memory.workspace * *std::ranges::max_element(tokens) / longest;
  // Gradients are added up in the type of the weights.
  const Bytes of_gradients = rounded_bytes_ > 0 ? kept_bytes_ / rounded_bytes_ : 1;
  for (int layer = stage.begin; layer < stage.end; ++layer) {
    if (model_.layers[layer].kind != LayerKind::attention) continue;
    const Bytes keys_and_values = 2 * layers[layer].output_activation_bytes;
    const bool trains = layer >= unpartitioned_.first_trainable_layer;
    memory.workspace += keys_and_values * (trains ? of_gradients : 1);
    if (!trains) continue;
    memory.key_values += keys_and_values;
    if (!recomputed_[layer]) memory.until_backward -= keys_and_values;  // beside the queries, for whole samples
  }
  memory.until_backward = (std::max<Bytes>(0, memory.until_backward) + longest - 1) / longest;
  // The cache is given whole samples, whose slices are put together.
  const int boundary = unpartitioned_.first_trainable_layer;
  if (unpartitioned_.cache.on && stage.begin < boundary && boundary <= stage.end)
    memory.workspace += of_all_tokens(layers[boundary - 1].output_activation_bytes);
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

RankMemory together(std::span<const RankMemory> stages, std::span<const StagesInFlight> moments) {
  RankMemory sum;
  for (const RankMemory& stage : stages) {
    sum.weights += stage.weights;
    sum.older_weights += stage.older_weights;
    sum.gradients += stage.gradients;
    sum.optimizer_state += stage.optimizer_state;
    sum.cache += stage.cache;
    sum.sent_ahead += stage.sent_ahead;
    sum.workspace = std::max(sum.workspace, stage.workspace);
    sum.exchange = std::max(sum.exchange, stage.exchange);
  }
  for (const StagesInFlight& moment : moments) {
    Bytes saved = 0;
    for (std::size_t i = 0; i < stages.size(); ++i)
      saved += moment[i].before_backward * stages[i].until_backward +
               moment[i].before_weights * stages[i].until_weights + moment[i].key_values * stages[i].key_values;
    sum.saved_activations = std::max(sum.saved_activations, saved);
  }
  return sum;
}

std::vector<RankMemory> memory_of_stages(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                         const Cluster& cluster) {
  const MicroBatchSize largest = planned_micro_batch(phase, settings.global_batch_size);
  const StageMemory memory(phase, profile, settings.optimizer, settings.dtype);
  std::map<std::string, std::vector<LayerCost>> layers_on;  // by device type
  std::vector<RankMemory> stages;
  for (int stage = 0; stage < num_stages(phase); ++stage) {
    const int rank = replicas_of_stage(phase, stage).front();
    FROSTPIPE_CHECK(rank < static_cast<int>(cluster.devices.size()), "a layout fits its cluster");
    const std::string& device_type = cluster.devices[rank].type;
    auto& layers = layers_on[device_type];
    if (layers.empty()) layers.resize(profile.model.layers.size());
    const auto [begin, end] = phase.partition.at(stage);
    const int needed_to = stage == 0 && phase.cache.on ? std::max(end, phase.first_trainable_layer) : end;
    for (int layer = std::max(0, begin - 1); layer < needed_to; ++layer) {
      layers[layer] = cost_of(profile, {.layer = layer,
                                        .device_type = device_type,
                                        .dtype = settings.dtype,
                                        .micro_batch_size = largest.samples,
                                        .tokens = largest.tokens,
                                        .tensor_parallel_size = phase.layout.tensor_parallel_size,
                                        .sequence_parallel = phase.layout.sequence_parallel});
    }
    stages.push_back(memory.of({begin, end}, layers, hands_on_at_once(phase, stage)));
  }
  return stages;
}

std::vector<RankMemory> memory_of(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                  const Cluster& cluster) {
  const std::vector<RankMemory> stages = memory_of_stages(phase, settings, profile, cluster);
  const auto moments = most_in_flight(phase, first_trainable_stage(phase));
  std::vector<RankMemory> pipeline_ranks;
  for (int pipeline_rank = 0; pipeline_rank < phase.layout.pipeline_parallel_size; ++pipeline_rank) {
    std::vector<RankMemory> on_rank;
    for (const int stage : stages_on(phase, pipeline_rank)) on_rank.push_back(stages[stage]);
    pipeline_ranks.push_back(together(on_rank, moments[pipeline_rank]));
  }
  return pipeline_ranks;
}

std::string what_does_not_fit(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster) {
  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(memory.size()); ++pipeline_rank) {
    const RankMemory& need = memory[pipeline_rank];
    for (const int rank : all_ranks_of(phase.layout, pipeline_rank)) {
      const auto limit = cluster.devices.at(rank).memory_limit_bytes;
      if (!limit || need.total() <= *limit) continue;
      return fmt::format(
          "{} {} needs {} (weights {}{}, gradients {}, optimizer {}, saved activations {}, workspace {}{}{}), rank {} "
          "has {}",
          has_one_stage_per_rank(phase) ? "stage" : "pipeline rank", pipeline_rank, format_bytes(need.total()),
          format_bytes(need.weights),
          need.older_weights > 0 ? fmt::format(", older weights {}", format_bytes(need.older_weights)) : "",
          format_bytes(need.gradients), format_bytes(need.optimizer_state), format_bytes(need.saved_activations),
          format_bytes(need.workspace),
          need.sent_ahead > 0 ? fmt::format(", sent ahead {}", format_bytes(need.sent_ahead)) : "",
          need.exchange > 0 ? fmt::format("; or exchange {}", format_bytes(need.exchange)) : "", rank,
          format_bytes(*limit));
    }
  }
  return "";
}

}  // namespace frostpipe
