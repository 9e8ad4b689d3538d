#include "profiles/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <tuple>

#include "base/error.h"

namespace frostpipe {

namespace {

using Measurements = std::span<const Measurement>;
using Weighted = std::pair<int, double>;  // grid line and its weight

/// Returns the measurements of one layer. Relies on ascending order of keys. Usually every layer has equally many, and
/// their position is then known without a search.
Measurements of_layer(const Profile& profile, int layer) {
  const Measurements all = profile.measurements;
  const std::size_t layers = profile.model.layers.size();
  if (layers > 0 && layer >= 0 && static_cast<std::size_t>(layer) < layers && all.size() % layers == 0) {
    const std::size_t count = all.size() / layers, begin = count * layer;
    if (count > 0 && all[begin].key.layer == layer && all[begin + count - 1].key.layer == layer &&
        (begin == 0 || all[begin - 1].key.layer < layer) &&
        (begin + count == all.size() || all[begin + count].key.layer > layer))
      return all.subspan(begin, count);
  }
  const auto found = std::ranges::equal_range(all, layer, {}, [](const Measurement& m) { return m.key.layer; });
  return {found.begin(), found.end()};
}

/// Returns the measurements with the key's layer, device type and dtype. Relies on ascending order of keys.
Measurements same_layer(const Profile& profile, const MeasurementKey& key) {
  const auto part = [](const MeasurementKey& k) { return std::tie(k.device_type, k.dtype); };
  const Measurements all = of_layer(profile, key.layer);
  const auto begin = std::lower_bound(all.begin(), all.end(), key, [&](const Measurement& m, const MeasurementKey& k) {
    return part(m.key) < part(k);
  });
  const auto end = std::upper_bound(
      begin, all.end(), key, [&](const MeasurementKey& k, const Measurement& m) { return part(k) < part(m.key); });
  return {begin, end};
}

const Measurement* find(Measurements measurements, const MeasurementKey& key) {
  const auto found = std::lower_bound(measurements.begin(), measurements.end(), key,
                                      [](const Measurement& m, const MeasurementKey& k) { return m.key < k; });
  return found != measurements.end() && found->key == key ? &*found : nullptr;
}

/// Formats "4..64", "8", or "none".
std::string range_text(const std::vector<int>& lines) {
  if (lines.empty()) return "none";
  if (lines.size() == 1) return std::to_string(lines.front());
  return fmt::format("{}..{}", lines.front(), lines.back());
}

/// Returns the grid lines from which `value` is interpolated, with `lines` ascending. The result is empty if `value` is
/// too far outside of them.
std::vector<Weighted> weights_along(const std::vector<int>& lines, int value) {
  auto upper = std::lower_bound(lines.begin(), lines.end(), value);
  if (upper != lines.end() && *upper == value) return {{value, 1.0}};
  if (lines.size() < 2) return {};
  const bool too_far = 2LL * value < lines.front() || value > 2LL * lines.back();
  if (too_far) return {};
  upper = std::clamp(upper, lines.begin() + 1, lines.end() - 1);
  const int high = *upper, low = *std::prev(upper);
  const double share = static_cast<double>(value - low) / (high - low);
  return {{low, 1 - share}, {high, share}};
}

/// Returns whether tensor ranks share the layer in the same way.
bool share_alike(const MeasurementKey& one, const MeasurementKey& other) {
  return one.tensor_parallel_size == other.tensor_parallel_size && one.sequence_parallel == other.sequence_parallel;
}

/// Returns the measured context lengths, ascending.
std::vector<int> contexts_of(Measurements same_layer, const MeasurementKey& key) {
  std::set<int> contexts;
  for (const auto& m : same_layer)
    if (share_alike(m.key, key)) contexts.insert(m.key.context_tokens);
  return {contexts.begin(), contexts.end()};
}

/// The measurements of one layer for one context and way of sharing, ascending by (micro-batch size, tokens).
class Grid {
 public:
  Grid(Measurements same_layer, const MeasurementKey& key) {
    for (const auto& m : same_layer)
      if (m.key.context_tokens == key.context_tokens && share_alike(m.key, key)) points_.push_back(&m);
  }

  std::vector<int> micro_batch_sizes() const {
    std::vector<int> sizes;
    for (const auto* point : points_)
      if (sizes.empty() || sizes.back() != point->key.micro_batch_size) sizes.push_back(point->key.micro_batch_size);
    return sizes;
  }

  /// Returns the token counts that were measured for every one of these micro-batch sizes.
  std::vector<int> tokens_on(const std::vector<Weighted>& lines) const {
    std::vector<int> common;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::vector<int> here, both;
      for (const auto* point : points_)
        if (point->key.micro_batch_size == lines[i].first) here.push_back(point->key.tokens);
      std::set_intersection(common.begin(), common.end(), here.begin(), here.end(), std::back_inserter(both));
      common = i == 0 ? here : both;
    }
    return common;
  }

  const LayerCost& at(int micro_batch_size, int tokens) const {
    for (const auto* point : points_)
      if (point->key.micro_batch_size == micro_batch_size && point->key.tokens == tokens) return point->cost;
    FROSTPIPE_CHECK(false, "tokens_on lists what was measured");
  }

 private:
  std::vector<const Measurement*> points_;
};

constexpr std::array kCostMembers{
    &LayerCost::forward_ns,        &LayerCost::input_gradient_ns,       &LayerCost::weight_gradient_ns,
    &LayerCost::frozen_forward_ns, &LayerCost::output_activation_bytes, &LayerCost::saved_activation_bytes,
    &LayerCost::workspace_bytes};
constexpr std::array kSplitMembers{&SplitBackward::input_ns, &SplitBackward::weight_ns, &SplitBackward::kept_bytes};

/// A grid point and its weight.
using WeightedCost = std::pair<const LayerCost*, double>;

std::int64_t rounded(double sum) { return std::max<std::int64_t>(0, std::llround(sum)); }

LayerCost mean_of(std::span<const WeightedCost> points) {
  LayerCost cost;
  for (const auto member : kCostMembers) {
    double sum = 0;
    for (const auto& [point, weight] : points) sum += weight * static_cast<double>(point->*member);
    cost.*member = rounded(sum);
  }
  const auto is_split = [](const WeightedCost& point) { return point.first->split_backward.has_value(); };
  if (!std::all_of(points.begin(), points.end(), is_split)) return cost;
  cost.split_backward.emplace();
  for (const auto member : kSplitMembers) {
    double sum = 0;
    for (const auto& [point, weight] : points) sum += weight * static_cast<double>(*point->split_backward.*member);
    *cost.split_backward.*member = rounded(sum);
  }
  return cost;
}

/// Returns advice for a device type or a tensor-parallel size that the whole profile lacks.
std::string advice_on_missing(const Profile& profile, const MeasurementKey& key) {
  std::set<std::string> types;
  bool has_tensor_ranks = false;
  for (const auto& [other, cost] : profile.measurements) {
    types.insert(other.device_type);
    has_tensor_ranks = has_tensor_ranks || (other.tensor_parallel_size == key.tensor_parallel_size &&
                                            other.sequence_parallel == key.sequence_parallel);
  }
  if (!types.empty() && !types.contains(key.device_type))
    return fmt::format(" (the profile is of {}; make one of {} too)", fmt::join(types, ", "), key.device_type);
  if (has_tensor_ranks || key.tensor_parallel_size == 1) return "";
  return fmt::format(" (profile --tensor-parallel 1,{}{})", key.tensor_parallel_size,
                     key.sequence_parallel ? " --sequence-parallel" : "");
}

}  // namespace

std::string describe(const MeasurementKey& key) {
  return fmt::format("layer {} on {} in {}, context {}, tensor-parallel size {}{}", key.layer, key.device_type,
                     to_string(key.dtype), key.context_tokens, key.tensor_parallel_size,
                     key.sequence_parallel ? " with sequence parallelism" : "");
}

LayerCost cost_of(const Profile& profile, const MeasurementKey& key) {
  if (key.micro_batch_size == 0) return {};
  if (const auto* exact = find(of_layer(profile, key.layer), key)) return exact->cost;

  const Measurements layer = same_layer(profile, key);
  const std::vector<int> contexts = contexts_of(layer, key);
  if (contexts.empty()) {
    const auto ascending = [](const Measurement& a, const Measurement& b) { return a.key < b.key; };
    FROSTPIPE_CHECK(std::is_sorted(profile.measurements.begin(), profile.measurements.end(), ascending),
                    "a profile lists its measurements in ascending order of keys");
    throw InvalidInput(fmt::format("profile of {}: {}: was not measured{}", profile.model.name, describe(key),
                                   advice_on_missing(profile, key)));
  }
  const auto weights_of = [&](std::string_view axis, const std::vector<int>& lines, int value) {
    std::vector<Weighted> weights = weights_along(lines, value);
    if (!weights.empty()) return weights;
    throw InvalidInput(
        fmt::format("profile of {}: {}", profile.model.name, describe(key)),
        fmt::format("{} must be a measured one, or within half the smallest and twice the largest of two or "
                    "more measured ones ({})",
                    axis, range_text(lines)),
        std::to_string(value));
  };
  std::vector<WeightedCost> points;
  for (const auto& [context, context_weight] : weights_of("context", contexts, key.context_tokens)) {
    MeasurementKey here = key;
    here.context_tokens = context;
    const Grid grid(layer, here);
    const auto size_weights = weights_of("micro-batch size", grid.micro_batch_sizes(), key.micro_batch_size);
    const auto token_weights = weights_of("number of tokens", grid.tokens_on(size_weights), key.tokens);
    for (const auto& [size, size_weight] : size_weights)
      for (const auto& [count, token_weight] : token_weights)
        points.emplace_back(&grid.at(size, count), context_weight * size_weight * token_weight);
  }
  return mean_of(points);
}

std::optional<LayerCost> cost_of_slice(const Profile& profile, MeasurementKey key) {
  const Measurements layer = same_layer(profile, key);
  if (contexts_of(layer, key).size() < 2) return std::nullopt;
  int least = std::numeric_limits<int>::max();
  for (const auto& m : layer)
    if (share_alike(m.key, key)) least = std::min(least, m.key.tokens);
  key.tokens = std::max(key.tokens, (least + 1) / 2);
  return cost_of(profile, key);
}

SplitBackward split_backward_of(const LayerCost& cost, bool with_input_gradient) {
  if (!cost.split_backward)
    throw InvalidInput("profile: split_backward", "must be measured for a schedule that splits it; profile again",
                       "missing");
  SplitBackward split = *cost.split_backward;
  if (!with_input_gradient) split.input_ns = std::max<Nanoseconds>(0, cost.weight_gradient_ns - split.weight_ns);
  return split;
}

std::vector<Nanoseconds*> times_in(LayerCost& cost) {
  std::vector<Nanoseconds*> times{&cost.forward_ns, &cost.input_gradient_ns, &cost.weight_gradient_ns,
                                  &cost.frozen_forward_ns};
  if (cost.split_backward) times.insert(times.end(), {&cost.split_backward->input_ns, &cost.split_backward->weight_ns});
  return times;
}

LayerCost share_of(LayerCost cost, double share) {
  std::vector<std::int64_t*> parts = times_in(cost);
  parts.insert(parts.end(), {&cost.output_activation_bytes, &cost.saved_activation_bytes, &cost.workspace_bytes});
  if (cost.split_backward) parts.push_back(&cost.split_backward->kept_bytes);
  for (std::int64_t* const part : parts)
    *part = static_cast<std::int64_t>(std::ceil(static_cast<double>(*part) * share));
  return cost;
}

Nanoseconds expected_frozen_forward_ns(const Profile& profile, MeasurementKey key, double samples) {
  const auto of = [&](int size) {
    key.micro_batch_size = size;
    return static_cast<double>(cost_of(profile, key).frozen_forward_ns);
  };
  const auto sizes = Grid(same_layer(profile, key), key).micro_batch_sizes();
  const int own = key.micro_batch_size, least = sizes.size() < 2 ? own : std::min(own, (sizes.front() + 1) / 2);
  if (samples <= least) return std::llround(of(least) * samples / least);
  const int below = static_cast<int>(samples);
  return std::llround(std::lerp(of(below), of(below + 1), samples - below));
}

Nanoseconds update_cost_of(const Profile& profile, int layer, std::string_view device_type, DType dtype,
                           Optimizer optimizer) {
  // Updates are usually listed layer by layer, so the search begins at the position to be expected.
  const std::size_t count = profile.updates.size(), layers = std::max<std::size_t>(1, profile.model.layers.size());
  const std::size_t guess = layer < 0 ? 0 : count * static_cast<std::size_t>(layer) / layers;
  for (std::size_t i = 0; i < count; ++i) {
    const UpdateMeasurement& update = profile.updates[(guess + i) % count];
    if (update.layer == layer && update.device_type == device_type && update.dtype == dtype &&
        update.optimizer == optimizer)
      return update.update_ns;
  }
  throw InvalidInput(fmt::format("profile of {}: update of layer {} on {} in {} by {}: was not measured",
                                 profile.model.name, layer, device_type, to_string(dtype), to_string(optimizer)));
}

}  // namespace frostpipe
