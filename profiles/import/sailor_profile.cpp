#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "profiles/error.h"
#include "profiles/import/foreign_json.h"
#include "profiles/import/formats.h"
#include "profiles/seconds.h"

namespace frostpipe {
namespace {

using foreign::Value;

constexpr int kSailorTokens = 2048;

/// MODEL of "MODEL_DEVICE_profile.json", as llm_info.json names it, and DEVICE.
struct SailorName {
  std::string model, device;
};

SailorName name_in(const std::filesystem::path& path, const Value& sizes) {
  const std::string stem = path.stem().string();
  for (const auto& [model, layers] : sizes.members()) {
    if (!stem.starts_with(model + "_")) continue;
    const std::string rest = stem.substr(model.size() + 1);
    return {.model = model, .device = rest.substr(0, rest.find('_'))};
  }
  throw InvalidInput(path.string(),
                     fmt::format("must be named MODEL_DEVICE_profile.json after a model of {}", sizes.place()), stem);
}

/// [micro-batch size][tensor-parallel size][layer], each ascending.
using LayerTimes = std::map<int, Value>;
using TimesBySize = std::map<int, std::map<int, LayerTimes>>;

TimesBySize times_in(const Value& root) {
  TimesBySize times;
  for (const auto& [samples, by_size] : root.members())
    for (const auto& [tensor_ranks, layers] : by_size.members())
      for (const auto& [layer, seconds] : layers.members())
        times[foreign::number_in(samples)][foreign::number_in(tensor_ranks)].emplace(foreign::number_in(layer),
                                                                                     seconds);
  return times;
}

int num_layers_in(const TimesBySize& times, std::string_view source) {
  const int num_layers =
      times.empty() || times.begin()->second.empty() ? 0 : times.begin()->second.begin()->second.rbegin()->first + 1;
  if (num_layers < 2)
    throw InvalidInput(std::string(source), "must have at least two layers", std::to_string(num_layers));
  return num_layers;
}

/// "imported from ..., not measured here", and what of it was left out.
std::string machine_of(const TimesBySize& times, const Value& sizes, std::string_view source) {
  std::string left_out;
  for (const auto& [tensor_ranks, layers] : times.begin()->second)
    if (!sizes.has(std::to_string(tensor_ranks)))
      left_out += fmt::format("{}{}", left_out.empty() ? "" : ", ", tensor_ranks);
  std::string machine = fmt::format("imported from {}, not measured here", source);
  if (!left_out.empty())
    machine += fmt::format("; tensor-parallel size {} left out, whose sizes llm_info.json does not have", left_out);
  return machine;
}

/// A layer's seconds, `which` of its row, by the times of that size and of larger ones: at small sizes the profile is
/// launch-bound and noisy, and a layer never takes longer than with twice the samples.
Nanoseconds cleaned_time(const TimesBySize& times, const MeasurementKey& key, int which) {
  double best = times.at(key.micro_batch_size).at(key.tensor_parallel_size).at(key.layer)[which].number();
  for (auto more = times.find(2 * key.micro_batch_size); more != times.end(); more = times.find(2 * more->first)) {
    const auto same = more->second.find(key.tensor_parallel_size);
    if (same != more->second.end() && same->second.contains(key.layer))
      best = std::min(best, same->second.at(key.layer)[which].number());
  }
  return nanoseconds_of(best);
}

/// `size`: the layer's row of llm_info.json.
Measurement measurement_of(const TimesBySize& times, const MeasurementKey& key, const Value& size) {
  const Nanoseconds forward = cleaned_time(times, key, 0), backward = cleaned_time(times, key, 1);
  const int samples = key.micro_batch_size;
  return {.key = key,
          .cost = {.forward_ns = forward,
                   .input_gradient_ns = backward / 2,
                   .weight_gradient_ns = backward - backward / 2,
                   .frozen_forward_ns = forward,
                   .output_activation_bytes = samples * static_cast<Bytes>(size["act_output_bytes"].number()),
                   .saved_activation_bytes = samples * static_cast<Bytes>(size["act_mem_bytes"].number()),
                   .workspace_bytes = 0}};
}

void require_layers(const LayerTimes& layers, int num_layers, int samples, int tensor_ranks, std::string_view source) {
  if (static_cast<int>(layers.size()) == num_layers) return;
  throw InvalidInput(
      std::string(source),
      fmt::format("must have {} layers for {} samples and tensor-parallel size {}", num_layers, samples, tensor_ranks),
      std::to_string(layers.size()));
}

}  // namespace

Model chain_of(std::string_view name, int num_layers) {
  Model model{.name = std::string(name), .hidden_size = 1, .layers = {}, .edges = {}};
  for (int i = 0; i < num_layers; ++i) {
    const LayerKind kind = i == 0 ? LayerKind::embedding : i + 1 == num_layers ? LayerKind::head : LayerKind::layer;
    model.layers.push_back({.name = fmt::format("layer.{}", i),
                            .kind = kind,
                            .block = kind == LayerKind::layer ? std::optional(i - 1) : std::nullopt});
    if (i > 0) model.edges.push_back({i - 1, i});
  }
  return model;
}

Profile import_sailor(std::string_view text, std::string_view source, const ImportOptions& options) {
  const std::filesystem::path path(source);
  const foreign::File file(text, source), sizes_file(path.parent_path() / "llm_info.json");
  const SailorName name = name_in(path, sizes_file.root());
  const Value sizes = sizes_file.root()[name.model];
  const TimesBySize times = times_in(file.root());
  const int num_layers = num_layers_in(times, source);

  Profile profile{.model = chain_of(name.model, num_layers)};
  profile.machine = machine_of(times, sizes, source);
  profile.model.hidden_size = static_cast<int>(sizes["1"]["1"]["act_output_bytes"].number() / 4 / kSailorTokens);
  for (int layer = 0; layer < num_layers; ++layer)
    profile.model.layers[layer].parameter_count =
        static_cast<std::int64_t>(sizes["1"][std::to_string(layer)]["params_bytes"].number() / 4);
  for (const auto& [samples, by_size] : times) {
    for (const auto& [tensor_ranks, layers] : by_size) {
      if (!sizes.has(std::to_string(tensor_ranks))) continue;
      require_layers(layers, num_layers, samples, tensor_ranks, source);
      const Value of_size = sizes[std::to_string(tensor_ranks)];
      for (const auto& [layer, seconds] : layers) {
        const MeasurementKey key{.layer = layer,
                                 .device_type = name.device,
                                 .micro_batch_size = samples,
                                 .tokens = kSailorTokens,
                                 .tensor_parallel_size = tensor_ranks};
        profile.measurements.push_back(measurement_of(times, key, of_size[std::to_string(layer)]));
      }
    }
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  // The published update is the whole step's, the same for every layer.
  const Nanoseconds step = nanoseconds_of(times.begin()->second.begin()->second.at(0)[2].number());
  for (int layer = 0; layer < num_layers; ++layer)
    profile.updates.push_back(
        {.layer = layer, .device_type = name.device, .optimizer = Optimizer::kAdamW, .update_ns = step / num_layers});
  profile.workload = Workload{.name = name.model,
                              .num_samples = options.num_samples,
                              .tokens = kSailorTokens,
                              .longest_tokens = kSailorTokens,
                              .global_batch_size = options.global_batch_size};
  return profile;
}

}  // namespace frostpipe
