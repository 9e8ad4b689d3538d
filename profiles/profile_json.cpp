#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "profiles/cluster_json.h"
#include "profiles/dtype_json.h"
#include "profiles/model_json.h"
#include "profiles/profile.h"
#include "profiles/workload_json.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, MeasurementKey>& key) {
  archive("layer", key.layer, json::at_least(0));
  archive("device_type", key.device_type);
  archive("dtype", key.dtype);
  archive("micro_batch_size", key.micro_batch_size, json::between(1, json::kMaxSamples));
  archive("tokens", key.tokens, json::between(1, json::kMaxTokens));
  archive("context_tokens", key.context_tokens, json::between(0, json::kMaxTokens));
  archive("tensor_parallel_size", key.tensor_parallel_size, json::between(1, json::kMaxRanks));
  archive("sequence_parallel", key.sequence_parallel, json::Otherwise{false});
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, SplitBackward>& split) {
  archive("input_ns", split.input_ns, json::kDuration);
  archive("weight_ns", split.weight_ns, json::kDuration);
  archive("kept_bytes", split.kept_bytes, json::kSize);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, LayerCost>& cost) {
  archive("forward_ns", cost.forward_ns, json::kDuration);
  archive("input_gradient_ns", cost.input_gradient_ns, json::kDuration);
  archive("weight_gradient_ns", cost.weight_gradient_ns, json::kDuration);
  archive("frozen_forward_ns", cost.frozen_forward_ns, json::kDuration);
  archive("output_activation_bytes", cost.output_activation_bytes, json::kSize);
  archive("stashed_bytes", cost.saved_activation_bytes, json::kSize);
  archive("workspace_bytes", cost.workspace_bytes, json::kSize);
  archive("split_backward", cost.split_backward);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Measurement>& measurement) {
  archive("key", measurement.key);
  archive("cost", measurement.cost);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, UpdateMeasurement>& update) {
  archive("layer", update.layer, json::at_least(0));
  archive("device_type", update.device_type);
  archive("dtype", update.dtype);
  archive("optimizer", update.optimizer);
  archive("update_ns", update.update_ns, json::kDuration);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, CacheSpeed>& speed) {
  archive("read", speed.read);
  archive("write", speed.write);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Profile>& profile) {
  archive("model", profile.model);
  archive("model_path", profile.model_path);
  archive("machine", profile.machine);
  archive("quick", profile.quick, json::MayBeMissing());
  archive("frozen_dtype", profile.frozen_dtype, kFrozenDTypes);
  archive("workload", profile.workload);
  archive("forward_flops", profile.forward_flops, json::at_least(1));
  archive("measurements", profile.measurements);
  archive("updates", profile.updates);
  archive("cache", profile.cache);
}

namespace {

constexpr std::string_view kFormat = "frostpipe.profile";
constexpr int kNewestVersion = 3;

void require_ascending_unique(Profile& profile, std::string_view source) {
  auto& all = profile.measurements;
  const auto by_key = [](const Measurement& a, const Measurement& b) { return a.key < b.key; };
  std::stable_sort(all.begin(), all.end(), by_key);
  const auto twice =
      std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key == b.key; });
  if (twice != all.end())
    throw InvalidInput(fmt::format("{}: measurements: {}, micro-batch size {}, tokens {}: is measured twice", source,
                                   describe(twice->key), twice->key.micro_batch_size, twice->key.tokens));
}

template <class Find>
bool has_unknown_word(const json::Json& row, const char* field, const Find& find) {
  const auto found = row.find(field);
  return found != row.end() && found->is_string() && !find(found->template get_ref<const std::string&>());
}

bool is_unknown_measurement(const json::Json& row) {
  const auto key = row.find("key");
  return key != row.end() && has_unknown_word(*key, "dtype", find_dtype);
}

bool is_unknown_update(const json::Json& row) {
  return has_unknown_word(row, "dtype", find_dtype) || has_unknown_word(row, "optimizer", find_optimizer);
}

/// Rows of a list in a file, each with its index there.
using Rows = std::vector<std::pair<std::size_t, json::Json>>;

/// Empties a list of the profile and returns its rows of known dtypes and optimizers. Others are left out, since a
/// profile may have more than a plan can ask for. If all rows are unknown, all are returned, and reading them fails.
Rows take_known_rows(json::Json& profile, const char* name, bool (*is_unknown)(const json::Json&)) {
  Rows known;
  const auto list = profile.find(name);
  if (list == profile.end() || !list->is_array()) return known;
  auto& rows = list->get_ref<json::Json::array_t&>();
  const bool are_all = std::all_of(rows.begin(), rows.end(), is_unknown);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (are_all || !is_unknown(rows[i])) known.emplace_back(i, std::move(rows[i]));
  rows.clear();
  return known;
}

void require_layer(int layer, const json::Place& row, int num_layers) {
  if (layer >= num_layers)
    throw InvalidInput(json::Place(row, "layer").text(), fmt::format("must be a layer of the model, < {}", num_layers),
                       std::to_string(layer));
}

void require_layer(const Measurement& one, const json::Place& row, int num_layers) {
  require_layer(one.key.layer, json::Place(row, "key"), num_layers);
}

/// Takes `layers` from a row's key: the layers for which the row stands. Returns an empty list if it has `layer`
/// instead.
std::vector<int> take_layers(json::Json& row, const json::Place& place) {
  std::vector<int> layers;
  const auto key = row.find("key");
  if (key == row.end() || !key->is_object() || !key->contains("layers") || key->contains("layer")) return layers;
  const json::Place key_place(place, "key"), layers_place(key_place, "layers");
  json::read((*key)["layers"], layers_place, layers, json::at_least(0));
  if (layers.empty()) json::fail(layers_place, "must not be empty", (*key)["layers"]);
  key->erase("layers");
  (*key)["layer"] = layers.front();
  return layers;
}

void read_measurements(Rows& rows, const json::Place& list, int num_layers, std::vector<Measurement>& values) {
  constexpr std::size_t kMax = 1'000'000;
  for (auto& [index, row] : rows) {
    const json::Place place(list, index);
    const std::vector<int> layers = take_layers(row, place);
    if (layers.size() > static_cast<std::size_t>(num_layers))
      throw InvalidInput(json::Place(json::Place(place, "key"), "layers").text(),
                         fmt::format("must name each of {} layers at most once", num_layers),
                         fmt::format("{} layers", layers.size()));
    if (values.size() + std::max<std::size_t>(1, layers.size()) > kMax)
      throw InvalidInput(list.text(), fmt::format("must be at most {} in all layers together", kMax), "more");
    Measurement one;
    json::read(row, place, one);
    require_layer(one, place, num_layers);
    values.push_back(one);
    for (std::size_t i = 1; i < layers.size(); ++i) {
      one.key.layer = layers[i];
      require_layer(one, place, num_layers);
      values.push_back(one);
    }
  }
}

/// Returns the rows of the file: layers that cost the same share one.
json::Json measurement_rows(const std::vector<Measurement>& measurements) {
  struct Row {
    json::Json row;
    std::vector<int> layers;
  };
  std::vector<Row> rows;
  std::unordered_map<std::string, std::size_t> row_of;  // by the text without the layer
  for (const Measurement& one : measurements) {
    Measurement same = one;
    same.key.layer = 0;
    json::Json row = json::write(same);
    const auto [found, is_new] = row_of.try_emplace(row.dump(), rows.size());
    if (is_new) rows.push_back({.row = std::move(row), .layers = {}});
    rows[found->second].layers.push_back(one.key.layer);
  }
  json::Json written = json::Json::array();
  for (auto& [row, layers] : rows) {
    if (layers.size() == 1) {
      row["key"]["layer"] = layers.front();
    } else {
      json::Json key = {{"layers", layers}};
      for (const auto& [name, value] : row["key"].items())
        if (name != "layer") key[name] = value;
      row["key"] = std::move(key);
    }
    written.push_back(std::move(row));
  }
  return written;
}

void read_updates(const Rows& rows, const json::Place& list, int num_layers, std::vector<UpdateMeasurement>& values) {
  for (const auto& [index, row] : rows) {
    const json::Place place(list, index);
    json::read(row, place, values.emplace_back());
    require_layer(values.back().layer, place, num_layers);
  }
}

}  // namespace

std::string to_json(const Profile& profile) {
  const json::Json measurements = measurement_rows(profile.measurements);
  const bool has_lists = measurements.size() < profile.measurements.size(),
             is_of_version_1 = std::ranges::none_of(
                 profile.measurements, [](const Measurement&one) { return one.key.sequence_parallel; });
  Profile rest = profile;
  rest.measurements.clear();
  json::Writer writer;
  writer.object["format"] = kFormat;
  writer.object["version"] = has_lists ? kNewestVersion : is_of_version_1 ? 1 : 2;
  fields(writer, rest);
  writer.object["measurements"] = measurements;
  return json::pretty_text(writer.object);
}

Profile profile_from_json(std::string_view json, std::string_view source) {
  constexpr std::size_t kMaxBytes = 64U << 20U;
  if (json.size() > kMaxBytes)
    throw InvalidInput(std::string(source), "must be at most 64 MiB; measure fewer sizes or join layers",
                       format_bytes(static_cast<Bytes>(json.size())));
  auto [version, content] = json::open_envelope(json, source, kFormat, kNewestVersion);
  Rows measurements = take_known_rows(content, "measurements", is_unknown_measurement);
  const Rows updates = take_known_rows(content, "updates", is_unknown_update);
  const json::Place place(source, version);
  Profile profile;
  json::read(content, place, profile);
  validate(profile.model, fmt::format("{}: model", source));
  const int num_layers = static_cast<int>(profile.model.layers.size());
  read_measurements(measurements, json::Place(place, "measurements"), num_layers, profile.measurements);
  read_updates(updates, json::Place(place, "updates"), num_layers, profile.updates);
  require_ascending_unique(profile, source);
  return profile;
}

}  // namespace frostpipe
