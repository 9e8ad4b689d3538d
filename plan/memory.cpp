#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "plan/batch.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

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
  for (int index = 0; index < static_cast<int>(model_.layers.size()); ++index) {
    const Layer& layer = model_.layers[index];
    const auto held = [&](Bytes per_parameter) {
      return of_tensor_rank(held_parameter_count(model_, index) * per_parameter,
                            layer.whole_parameter_count * per_parameter, unpartitioned.layout.tensor_parallel_size);
    };
    LayerMemory memory{.weights = held(kept_bytes_),
                       .trains = index >= unpartitioned.first_trainable_layer,
                       .recomputed = is_recomputed(unpartitioned.recompute, layer.kind),
                       .has_attention = has_attention(layer.kind)};
    memory.version = memory.weights + held(memory.trains ? rounded_bytes_ : frozen_rounded_bytes_);
    memory.joins_segment =
        index > 0 && joins_segment(unpartitioned.recompute, memory.recomputed, layers_[index - 1].recomputed);
    layers_.push_back(memory);
  }
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

StageMemory::OnDevice::OnDevice(const StageMemory& memory, std::span<const LayerCost> layers, LayerRange within)
    : of_(memory), layers_(layers), first_(within.begin) {
  const int first_trainable_layer = of_.unpartitioned_.first_trainable_layer;
  Sums sums;
  std::vector<Bytes> transients;
  for (int layer = within.begin; layer < within.end; ++layer) {
    const LayerMemory& held = of_.layers_[layer];
    const LayerCost& cost = layers_[layer];
    const bool trains = held.trains;
    const bool begins_segment = trains && (segments_.empty() || !held.joins_segment);
    if (begins_segment) segments_.push_back({.begin = layer});
    sums_.push_back(sums);
    sums.segment += begins_segment;
    sums.versions += held.version;
    sums.weights += held.weights;
    // A frozen layer saves nothing, so its output counts as a transient.
    transients.push_back(cost.workspace_bytes + (trains ? 0 : cost.output_activation_bytes));
    if (trains) {
      sums.saved += cost.saved_activation_bytes;
      if (of_.splits_backward_) sums.split += split_backward_of(cost, layer > first_trainable_layer).kept_bytes;
    }
    if (!held.has_attention) continue;
    const Bytes keys_and_values = 2 * cost.output_activation_bytes;
    // Gradients are accumulated in the type of the weights.
    const Bytes of_gradients = of_.rounded_bytes_ > 0 ? of_.kept_bytes_ / of_.rounded_bytes_ : 1;
    sums.keys_and_values_in_action += keys_and_values * (trains ? of_gradients : 1);
    if (!trains) continue;
    sums.keys_and_values += keys_and_values;
    if (!held.recomputed) sums.keys_and_values_beside += keys_and_values;  // sums.saved includes them
  }
  sums_.push_back(sums);
  transients_ = RangeMaximum(std::move(transients));
  std::vector<Bytes> again;
  segments_.push_back({.begin = within.end});
  for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    Segment& next = segments_[i + 1];
    SavedActivations saved;
    const bool recomputed = of_.layers_[next.begin - 1].recomputed;
    const Sums &from = before(segment.begin), &to = before(next.begin);
    saved.add_segment(to.saved - from.saved, to.split - from.split, recomputed, output_bytes_of(next.begin - 1),
                      of_.splits_backward_);
    next.kept_before = segment.kept_before + saved.kept;
    next.left_before = segment.left_before + (of_.splits_backward_ ? saved.until_weights - saved.kept : 0);
    again.push_back((recomputed ? to.saved - from.saved : 0) - next.left_before);
  }
  again_ = RangeMaximum(std::move(again));
}

void StageMemory::OnDevice::SavedActivations::add_segment(Bytes saved, Bytes split, bool recomputed, Bytes next_input,
                                                          bool splits_backward) {
  const Bytes is_kept = recomputed ? next_input : saved;
  kept += is_kept;
  until_weights += split;
  // I runs from the last segment to the first, and each segment leaves what W needs in place of what it had saved.
  computed_again = std::max(computed_again + (splits_backward ? split - is_kept : 0), recomputed ? saved : 0);
}

StageMemory::OnDevice::SavedActivations StageMemory::OnDevice::saved_activations(int begin, int end) const {
  SavedActivations saved;
  if (begin >= end) return saved;
  const auto add = [&](int from, int to) {
    saved.add_segment(before(to).saved - before(from).saved, before(to).split - before(from).split,
                      of_.layers_[to - 1].recomputed, to < end ? output_bytes_of(to - 1) : 0, of_.splits_backward_);
  };
  // The first layer that saves anything also saves its input, which nothing else on this rank holds.
  saved.kept = output_bytes_of(begin - 1);
  // The segments `next` to `last` begin inside the stage; the last of them may end outside it.
  const int next = before(begin + 1).segment, last = before(end).segment - 1;
  if (next > last) {
    add(begin, end);
    return saved;
  }
  add(begin, segments_[next].begin);
  if (next < last) {  // whole segments, as add_segment would add them one after the other
    const Segment &from = segments_[next], &to = segments_[last];
    saved.kept += to.kept_before - from.kept_before;
    saved.until_weights += before(to.begin).split - before(from.begin).split;
    saved.computed_again = to.left_before + std::max(saved.computed_again - from.left_before, again_.of(next, last));
  }
  add(segments_[last].begin, end);
  return saved;
}

RankMemory StageMemory::OnDevice::of(LayerRange stage, bool hands_on) const {
  const auto [begin, end] = stage;
  const Phase& phase = of_.unpartitioned_;
  const int n = static_cast<int>(of_.model_.layers.size());
  const int first_to_train = std::clamp(phase.first_trainable_layer, begin, end);
  RankMemory memory;
  memory.weights = before(end).versions - before(begin).versions;
  if (of_.keeps_older_weights_) memory.older_weights = before(end).versions - before(first_to_train).versions;
  memory.gradients = before(end).weights - before(first_to_train).weights;
  memory.optimizer_state = memory.gradients * of_.moments_;
  const SavedActivations saved = saved_activations(first_to_train, end);
  memory.until_backward = saved.kept;
  memory.until_weights = saved.until_weights;
  const Bytes sent = end < n ? output_bytes_of(end - 1) : 0;
  const Bytes transient = begin < end ? transients_.of(begin - first_, end - first_) : 0;
  memory.workspace = transient + saved.computed_again + output_bytes_of(begin - 1) + sent;
  if (end <= phase.first_trainable_layer && !hands_on) memory.sent_ahead = phase.num_micro_batches * sent;
  if (begin == 0 || end == n) memory.exchange = of_.exchange_;
  // With overlapping iterations, the next iteration's forwards are in flight already.
  if (begin == 0 && of_.keeps_older_weights_ && of_.exchange_ > 0)
    memory.exchange += (phase.layout.pipeline_parallel_size - 1) * memory.until_backward;
  if (begin == 0 && phase.cache.on)
    memory.cache = 2 * phase.num_micro_batches * of_.of_all_tokens(output_bytes_of(phase.first_trainable_layer - 1));
  if (num_slices(phase) > 1) cut_into_slices(memory, stage);
  return memory;
}

void StageMemory::OnDevice::cut_into_slices(RankMemory& memory, LayerRange stage) const {
  const Phase& phase = of_.unpartitioned_;
  const Sums &from = before(stage.begin), &to = before(stage.end);
  const std::int64_t longest = longest_sample(phase);
  const std::vector<std::int64_t> tokens = tokens_of_slices(phase, longest);
  memory.workspace = memory.workspace * *std::ranges::max_element(tokens) / longest + to.keys_and_values_in_action -
                     from.keys_and_values_in_action;
  memory.key_values = to.keys_and_values - from.keys_and_values;
  const Bytes beside = to.keys_and_values_beside - from.keys_and_values_beside;
  memory.until_backward = (std::max<Bytes>(0, memory.until_backward - beside) + longest - 1) / longest;
  // The cache stores whole samples, so the slices are assembled.
  const int boundary = phase.first_trainable_layer;
  if (phase.cache.on && stage.begin < boundary && boundary <= stage.end)
    memory.workspace += of_.of_all_tokens(layers_[boundary - 1].output_activation_bytes);
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
  const std::vector<bool> hand_on = stages_that_hand_on_at_once(phase);
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
    stages.push_back(memory.of({begin, end}, layers, hand_on[stage]));
  }
  return stages;
}

std::vector<RankMemory> memory_of(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                  const Cluster& cluster) {
  const std::vector<RankMemory> stages = memory_of_stages(phase, settings, profile, cluster);
  const auto moments = peaks_in_flight(phase, first_trainable_stage(phase));
  const std::vector<std::vector<int>> stages_on = stages_on_each(phase);
  std::vector<RankMemory> pipeline_ranks;
  for (int pipeline_rank = 0; pipeline_rank < phase.layout.pipeline_parallel_size; ++pipeline_rank) {
    std::vector<RankMemory> on_rank;
    for (const int stage : stages_on[pipeline_rank]) on_rank.push_back(stages[stage]);
    pipeline_ranks.push_back(together(on_rank, moments[pipeline_rank]));
  }
  return pipeline_ranks;
}

namespace {

/// Returns "weights 1.00 MiB, gradients 1.00 MiB, ...", whose sum is need.total(). Rare terms are left out where they
/// are 0.
std::string terms_of_total(const RankMemory& need) {
  const auto if_any = [](std::string_view name, Bytes bytes) {
    return bytes > 0 ? fmt::format(", {} {}", name, format_bytes(bytes)) : "";
  };
  const std::string lasting = fmt::format("weights {}{}, gradients {}, optimizer {}{}{}", format_bytes(need.weights),
                                          if_any("older weights", need.older_weights), format_bytes(need.gradients),
                                          format_bytes(need.optimizer_state), if_any("cache", need.cache),
                                          if_any("sent ahead", need.sent_ahead));
  const std::string saved = format_bytes(need.saved_activations), workspace = format_bytes(need.workspace);
  if (need.exchange > need.saved_activations + need.workspace)
    return fmt::format("{}, exchange {} in place of saved activations {} and workspace {}", lasting,
                       format_bytes(need.exchange), saved, workspace);
  return fmt::format("{}, saved activations {}, workspace {}", lasting, saved, workspace);
}

}  // namespace

std::string what_does_not_fit(const Phase& phase, const std::vector<RankMemory>& memory, const Cluster& cluster) {
  for (int pipeline_rank = 0; pipeline_rank < static_cast<int>(memory.size()); ++pipeline_rank) {
    const RankMemory& need = memory[pipeline_rank];
    for (const int rank : all_ranks_of(phase.layout, pipeline_rank)) {
      const auto limit = cluster.devices.at(rank).memory_limit_bytes;
      if (!limit || need.total() <= *limit) continue;
      return fmt::format("{} {} needs {} ({}), rank {} has {}",
                         has_one_stage_per_rank(phase) ? "stage" : "pipeline rank", pipeline_rank,
                         format_bytes(need.total()), terms_of_total(need), rank, format_bytes(*limit));
    }
  }
  return "";
}

}  // namespace frostpipe
