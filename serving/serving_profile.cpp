#include "serving/serving_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"

namespace frostpipe {
namespace {

/// The largest time of a layer, which is also its limit in a file (json::kDuration). Sums over layers stay within 64
/// bits, and no objective is as long.
constexpr Nanoseconds kMaxLayerNs = 1'000'000'000'000'000;
/// Repeated measurements on an idle machine differ by less than this fraction.
constexpr double kLargestFall = 0.1;

std::set<std::string> device_types(const Profile& profile, DType dtype) {
  std::set<std::string> types;
  for (const auto& [key, cost] : profile.measurements)
    if (key.dtype == dtype) types.insert(key.device_type);
  return types;
}

/// Splits "1/2 L4" into the type "L4" and the share 2; other types are whole devices.
std::pair<std::string, int> type_and_share(const std::string& type) {
  int share = 0;
  if (type.starts_with("1/")) {
    const char* const end = type.data() + type.size();
    const auto [stop, error] = std::from_chars(type.data() + 2, end, share);
    if (error == std::errc() && share >= 1 && stop != end && *stop == ' ') return {std::string(stop + 1, end), share};
  }
  return {type, 1};
}

/// Adds one layer's times for batches of 1, 2, ... as far as they are known.
void add_layer(const Profile& profile, MeasurementKey key, int max_requests, BlockTimes& times) {
  const bool frozen_like_this = profile.frozen_dtype.value_or(key.dtype) == key.dtype;
  auto& forward = times.forward_ns.emplace_back();
  auto& working = times.working_bytes.emplace_back();
  for (int requests = 1; requests <= max_requests; ++requests) {
    key.micro_batch_size = requests;
    try {
      const LayerCost cost = cost_of(profile, key);
      forward.push_back(std::max<Nanoseconds>(1, frozen_like_this ? cost.frozen_forward_ns : cost.forward_ns));
      working.push_back(cost.output_activation_bytes + cost.workspace_bytes);
    } catch (const InvalidInput&) {  // not measured for so many requests
      if (requests == 1) throw;
      break;
    }
  }
}

void cut_to_common_batches(BlockTimes& times) {
  const auto shortest = std::ranges::min_element(times.forward_ns, {}, &std::vector<Nanoseconds>::size)->size();
  for (auto& row : times.forward_ns) row.resize(shortest);
  for (auto& row : times.working_bytes) row.resize(shortest);
}

}  // namespace

int num_blocks(const ServingProfile& profile) { return static_cast<int>(profile.block_ends.size()); }

int largest_batch(const BlockTimes& times) {
  return times.forward_ns.empty() ? 0 : static_cast<int>(times.forward_ns.front().size());
}

const BlockTimes* find_times(const ServingProfile& profile, std::string_view device_type, int share) {
  const auto found = std::ranges::find_if(
      profile.times, [&](const BlockTimes& times) { return times.device_type == device_type && times.share == share; });
  return found == profile.times.end() ? nullptr : &*found;
}

std::vector<int> measured_shares(const ServingProfile& profile, std::string_view device_type) {
  std::vector<int> shares;
  for (const auto& times : profile.times)
    if (times.device_type == device_type) shares.push_back(times.share);
  std::ranges::sort(shares);
  return shares;
}

ServingProfile serving_profile_of(const std::vector<Profile>& profiles, DType dtype, int tokens, int max_requests) {
  FROSTPIPE_CHECK(!profiles.empty(), "a model is served by what was measured");
  const Model& model = profiles.front().model;
  const int num_layers = static_cast<int>(model.layers.size());
  ServingProfile result{.model_name = model.name, .tokens = tokens};
  for (int layer = 0; layer < num_layers; ++layer) {
    result.block_ends.push_back(layer + 1);
    result.weight_bytes.push_back(model.layers[layer].parameter_count * bytes_per_value(dtype));
  }
  for (const Profile& profile : profiles) {
    if (device_types(profile, dtype).empty())
      throw InvalidInput(fmt::format("a profile of {} has no measurements in {}", model.name, to_string(dtype)));
    if (fingerprint(profile.model) != fingerprint(model))
      throw InvalidInput(fmt::format("the profiles are of different models, {} and {}: give those of one", model.name,
                                     profile.model.name));
    for (const auto& type : device_types(profile, dtype)) {
      const auto [device_type, share] = type_and_share(type);
      if (find_times(result, device_type, share) != nullptr)
        throw InvalidInput(fmt::format("profiles of {}", model.name), "must be of different device types",
                           fmt::format("\"{}\" twice", type));
      BlockTimes times{.device_type = device_type, .share = share};
      for (int layer = 0; layer < num_layers; ++layer)
        add_layer(profile, {.layer = layer, .device_type = type, .dtype = dtype, .tokens = tokens}, max_requests,
                  times);
      cut_to_common_batches(times);
      result.times.push_back(std::move(times));
    }
  }
  MeasurementKey first{.device_type = *device_types(profiles.front(), dtype).begin(), .dtype = dtype, .tokens = tokens};
  for (first.layer = 0; first.layer + 1 < num_layers; ++first.layer)
    result.cut_bytes.push_back(cost_of(profiles.front(), first).output_activation_bytes);
  return result;
}

std::optional<FallingTime> find_falling_time(const ServingProfile& profile) {
  std::optional<FallingTime> found;
  double largest_fall = kLargestFall;
  for (const BlockTimes& times : profile.times) {
    int smaller = 0;
    Nanoseconds smaller_ns = 0;  // the longest time up to here
    for (int batch = 1; batch <= largest_batch(times); ++batch) {
      Nanoseconds sum_ns = 0;
      for (const auto& row : times.forward_ns) sum_ns += row[batch - 1];
      if (sum_ns >= smaller_ns) {
        smaller = batch;
        smaller_ns = sum_ns;
        continue;
      }
      const double fall = 1 - static_cast<double>(sum_ns) / static_cast<double>(smaller_ns);
      if (fall <= largest_fall) continue;
      largest_fall = fall;
      found = {.device_type = times.device_type,
               .share = times.share,
               .smaller = smaller,
               .larger = batch,
               .smaller_ns = smaller_ns,
               .larger_ns = sum_ns};
    }
  }
  return found;
}

ServingProfile without_falling_times(ServingProfile profile) {
  for (BlockTimes& times : profile.times)
    for (auto& row : times.forward_ns)
      for (auto batch = static_cast<int>(row.size()) - 2; batch >= 0; --batch)
        row[batch] = std::min(row[batch], row[batch + 1]);
  return profile;
}

ServingProfile join_blocks(const ServingProfile& profile, const std::vector<int>& ends) {
  FROSTPIPE_CHECK(!ends.empty() && ends.back() == num_blocks(profile), "the joined blocks are all blocks");
  ServingProfile result{.model_name = profile.model_name, .tokens = profile.tokens};
  for (const auto& times : profile.times)
    result.times.push_back({.device_type = times.device_type, .share = times.share});
  int begin = 0;
  for (const int end : ends) {
    FROSTPIPE_CHECK(end > begin, "a joined block has at least one block");
    result.block_ends.push_back(profile.block_ends[end - 1]);
    if (end < num_blocks(profile)) result.cut_bytes.push_back(profile.cut_bytes[end - 1]);
    Bytes weights = 0;
    for (int block = begin; block < end; ++block) weights += profile.weight_bytes[block];
    result.weight_bytes.push_back(weights);
    for (std::size_t i = 0; i < profile.times.size(); ++i) {
      const BlockTimes& from = profile.times[i];
      std::vector<Nanoseconds> forward(largest_batch(from), 0);
      std::vector<Bytes> working(from.working_bytes.empty() ? 0 : largest_batch(from), 0);
      for (int block = begin; block < end; ++block) {
        for (std::size_t b = 0; b < forward.size(); ++b) forward[b] += from.forward_ns[block][b];
        for (std::size_t b = 0; b < working.size(); ++b)
          working[b] = std::max(working[b], from.working_bytes[block][b]);
      }
      result.times[i].forward_ns.push_back(std::move(forward));
      if (!working.empty()) result.times[i].working_bytes.push_back(std::move(working));
    }
    begin = end;
  }
  return result;
}

ServingProfile with_heads(ServingProfile layers, int shared_layers, int heads) {
  FROSTPIPE_CHECK(1 <= shared_layers && shared_layers < num_blocks(layers), "heads share some layers, not all");
  const Bytes shared_output = layers.cut_bytes[shared_layers - 1];
  for (std::size_t layer = shared_layers; layer < layers.block_ends.size(); ++layer) {
    layers.weight_bytes[layer] *= heads;
    if (layer < layers.cut_bytes.size()) layers.cut_bytes[layer] *= heads;
    for (BlockTimes& times : layers.times) {
      for (Nanoseconds& forward : times.forward_ns[layer]) forward = std::min(forward * heads, kMaxLayerNs);
      if (times.working_bytes.empty()) continue;
      for (std::size_t b = 0; b < times.working_bytes[layer].size(); ++b)
        times.working_bytes[layer][b] += static_cast<Bytes>(b + 1) * shared_output;
    }
  }
  return layers;
}

}  // namespace frostpipe
