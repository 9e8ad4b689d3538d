#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error.h"
#include "profiles/import/foreign_json.h"
#include "profiles/import/formats.h"

namespace frostpipe {
namespace {

using foreign::Value;

constexpr int kSailorTokens = 2048;

/// The MODEL, as named in llm_info.json, and the DEVICE of a file "MODEL_DEVICE_profile.json".
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

/// The rows of a profile: [micro-batch size][tensor-parallel size][layer], each ascending.
using LayerTimes = std::map<int, Value>;
using TimesBySize = std::map<int, std::map<int, LayerTimes>>;

TimesBySize times_in(const Value& root) {
  TimesBySize times;
  for (const auto& [samples, by_size] : root.members())
    for (const auto& [tensor_ranks, layers] : by_size.members())
      for (const auto& [layer, seconds] : layers.members())
        times[foreign::number_in(samples, by_size, 1)][foreign::number_in(tensor_ranks, layers, 1)].emplace(
            foreign::number_in(layer, seconds), seconds);
  return times;
}

/// Returns the number of layers. Throws InvalidInput unless every size has the same layers 0, 1, ... without gaps.
int num_layers_in(const TimesBySize& times, std::string_view source) {
  const std::size_t num_layers =
      times.empty() || times.begin()->second.empty() ? 0 : times.begin()->second.begin()->second.size();
  if (num_layers < 2)
    throw InvalidInput(std::string(source), "must have at least two layers", std::to_string(num_layers));
  for (const auto& [samples, by_size] : times)
    for (const auto& [tensor_ranks, layers] : by_size)
      if (layers.size() != num_layers || layers.rbegin()->first != static_cast<int>(num_layers) - 1)
        throw InvalidInput(std::string(source),
                           fmt::format("must have the layers 0 to {} for {} samples and tensor-parallel size {}",
                                       num_layers - 1, samples, tensor_ranks),
                           fmt::format("{} layers up to {}", layers.size(), layers.rbegin()->first));
  return static_cast<int>(num_layers);
}

/// Returns "imported from ..., not measured here", and the tensor-parallel sizes that are left out.
std::string machine_of(const TimesBySize& times, const Value& sizes, std::string_view source) {
  std::string left_out;
  for (const auto& [tensor_ranks, layers] : times.begin()->second)
    if (!sizes.has(std::to_string(tensor_ranks)))
      left_out += fmt::format("{}{}", left_out.empty() ? "" : ", ", tensor_ranks);
  std::string machine = fmt::format("imported from {}, not measured here", source);
  if (!left_out.empty())
    machine += fmt::format("; tensor-parallel sizes without layer sizes in llm_info.json are left out: {}", left_out);
  return machine;
}

/// Returns entry `which` of a layer's row, in nanoseconds, as the minimum over this micro-batch size, twice it, and
/// so on: at small sizes the profile is launch-bound and noisy, and twice the samples never take less time.
Nanoseconds cleaned_time(const TimesBySize& times, const MeasurementKey& key, int which) {
  const Value own = times.at(key.micro_batch_size).at(key.tensor_parallel_size).at(key.layer)[which];
  double best = own.number();
  for (auto more = times.find(2 * key.micro_batch_size); more != times.end(); more = times.find(2 * more->first)) {
    const auto same = more->second.find(key.tensor_parallel_size);
    if (same != more->second.end() && same->second.contains(key.layer))
      best = std::min(best, same->second.at(key.layer)[which].number());
  }
  return rounded(1e9 * best, own.place());
}

/// Returns the measurement of one layer. `size` is its row of llm_info.json.
Measurement measurement_of(const TimesBySize& times, const MeasurementKey& key, const Value& size) {
  const Nanoseconds forward = cleaned_time(times, key, 0), backward = cleaned_time(times, key, 1);
  const auto bytes = [&](const Value& of_a_sample) {
    return rounded(key.micro_batch_size * of_a_sample.number(), of_a_sample.place());
  };
  return {.key = key,
          .cost = {.forward_ns = forward,
                   .input_gradient_ns = backward / 2,
                   .weight_gradient_ns = backward - backward / 2,
                   .frozen_forward_ns = forward,
                   .output_activation_bytes = bytes(size["act_output_bytes"]),
                   .saved_activation_bytes = bytes(size["act_mem_bytes"]),
                   .workspace_bytes = 0}};
}

}  // namespace

std::int64_t rounded(double amount, std::string_view source, std::int64_t most) {
  if (!(amount >= 0 && amount <= static_cast<double>(most)))
    throw InvalidInput(source, fmt::format("must be from 0 to {} nanoseconds, bytes or parameters", most),
                       fmt::format("{:g}", amount));
  return std::llround(amount);
}

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
  const Value hidden_bytes = sizes["1"]["1"]["act_output_bytes"];
  profile.model.hidden_size = static_cast<int>(
      rounded(hidden_bytes.number() / 4 / kSailorTokens, hidden_bytes.place(), std::numeric_limits<int>::max()));
  for (int layer = 0; layer < num_layers; ++layer) {
    const Value bytes = sizes["1"][std::to_string(layer)]["params_bytes"];
    profile.model.layers[layer].parameter_count = rounded(bytes.number() / 4, bytes.place());
  }
  for (const auto& [samples, by_size] : times) {
    for (const auto& [tensor_ranks, layers] : by_size) {
      if (!sizes.has(std::to_string(tensor_ranks))) continue;
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
  if (profile.measurements.empty())
    throw InvalidInput(sizes.place(), "must have layer sizes for a tensor-parallel size of the profile", "none");
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  // The published update time is that of the whole step and is repeated for every layer.
  const Value step_seconds = times.begin()->second.begin()->second.at(0)[2];
  const Nanoseconds step = rounded(1e9 * step_seconds.number(), step_seconds.place());
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
