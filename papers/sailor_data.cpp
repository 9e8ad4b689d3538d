#include "papers/sailor_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "profiles/import/foreign_json.h"

namespace frostpipe {
namespace {

using foreign::Value;

constexpr std::string_view kZone = "us-central1-a";  // all runs are in this zone

std::string key(const std::string& a, const std::string& b, int pairs) { return fmt::format("{}/{}/{}", a, b, pairs); }

/// Corrects the plans of GPT-Neo with 4 stages, which name layer 29 twice and layer 19 never. Returns what was
/// corrected, or "".
std::string repair(SailorRun& run) {
  std::map<int, int> times_named;
  int largest = 0;
  for (const auto& stage : run.stages)
    for (const int layer : stage.layers) ++times_named[layer], largest = std::max(largest, layer);
  for (auto& stage : run.stages) {
    for (std::size_t i = 1; i < stage.layers.size(); ++i) {
      const int expected = stage.layers[i - 1] + 1, named = stage.layers[i];
      if (named == expected || times_named[named] < 2 || times_named[expected] > 0) continue;
      stage.layers[i] = expected;
      return fmt::format("layer {} is named twice; one of them is read as layer {}, which is missing", named, expected);
    }
  }
  return "";
}

int positive(const Value& value) {
  const int number = value.integer();
  if (number < 1) throw InvalidInput(value.place(), "must be at least 1", std::to_string(number));
  return number;
}

/// Returns a measured quantity, which other figures are divided by.
double measured(const Value& value) {
  const double number = value.number();
  if (!(number > 0 && number <= 1e15))
    throw InvalidInput(value.place(), "must be above 0 and at most 10^15", fmt::format("{}", number));
  return number;
}

Bytes bytes_in(const Value& value) {
  const double number = value.number();
  if (!(number >= 0 && number <= 1e15))
    throw InvalidInput(value.place(), "must be a number of bytes from 0 to 10^15", fmt::format("{}", number));
  return static_cast<Bytes>(number);
}

std::vector<Value> some_elements(const Value& value) {
  std::vector<Value> elements = value.elements();
  if (elements.empty()) throw InvalidInput(value.place(), "must not be empty", "[]");
  return elements;
}

SailorRun read_run(const Value& plan, std::string name) {
  SailorRun run{.name = std::move(name), .stages = {}, .repaired = {}};
  run.model = run.name.find("GPT-NEO") != std::string::npos ? "GPT-Neo-2.7" : "OPT-350";
  const Value pipeline = plan["pipeline_list"][0];
  const int num_stages = positive(pipeline["num_stages"]);
  for (int s = 0; s < num_stages; ++s) {
    SailorRun::Stage stage;
    for (const Value& layer : some_elements(pipeline["layers_per_stage"][s])) stage.layers.push_back(layer.integer());
    for (const Value& replica : some_elements(pipeline["tmp_per_stage"][s]))
      stage.replicas.push_back({.device = replica[0][0][0].text(), .tensor_parallel_size = positive(replica[1])});
    run.stages.push_back(std::move(stage));
  }
  run.micro_batch_size = positive(plan["mbs"]);
  run.global_batch_size = positive(plan["gbs"]);
  run.iteration_seconds = measured(plan["real"]);
  run.peak_memory_bytes = static_cast<Bytes>(measured(plan["max_mem"]));
  run.repaired = repair(run);
  return run;
}

}  // namespace

SailorData::SailorData(std::filesystem::path folder) : folder_(std::move(folder)) {
  const foreign::File info(folder_ / "llm_info.json");
  for (const auto& [model, by_size] : info.root().members())
    for (const auto& [size, layers] : by_size.members())
      for (const auto& [layer, bytes] : layers.members())
        sizes_[model][foreign::number_in(size, layers)][foreign::number_in(layer, bytes)] = {
            .parameter_bytes = bytes_in(bytes["params_bytes"]),
            .output_bytes = bytes_in(bytes["act_output_bytes"]),
            .stored_bytes = bytes_in(bytes["act_mem_bytes"])};
  const foreign::File links(folder_ / "multizone_bandwidths_het.json");
  for (const auto& [from, by_count] : links.root()[kZone].members()) {
    for (const auto& [count, zones] : by_count.members()) {
      if (!zones.has(kZone)) continue;
      for (const auto& [to, by_other_count] : zones[kZone].members()) {
        if (!by_other_count.has(count)) continue;
        const Value curve = by_other_count[count];
        curves_[key(from, to, foreign::number_in(count, zones))] = {.quadratic = curve[0][0].number(),
                                                                    .linear = curve[0][1].number(),
                                                                    .constant = curve[0][2].number(),
                                                                    .plateau_bytes_per_second = curve[1].number()};
      }
    }
  }
}

std::vector<SailorRun> SailorData::runs() const {
  std::vector<std::filesystem::path> files;
  std::error_code none;  // a missing folder holds no runs
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "validation", none))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<SailorRun> runs;
  for (const auto& path : files) runs.push_back(read_run(foreign::File(path).root(), path.stem().string()));
  return runs;
}

const SailorData::Times& SailorData::times_of(const std::string& model, const std::string& device) {
  const auto [entry, is_new] = times_.try_emplace(model + "/" + device);
  if (!is_new) return entry->second;
  const foreign::File profile(folder_ / fmt::format("{}_{}_profile.json", model, device));
  for (const auto& [samples, by_size] : profile.root().members())
    for (const auto& [size, layers] : by_size.members())
      for (const auto& [layer, times] : layers.members())
        entry->second[foreign::number_in(samples, by_size)][foreign::number_in(size, layers)][foreign::number_in(
            layer, times)] = {.forward = times[0].number(), .backward = times[1].number(), .update = times[2].number()};
  return entry->second;
}

SailorLayerTime SailorData::layer_time(const std::string& model, const std::string& device, int micro_batch_size,
                                       int tensor_parallel_size, int layer) {
  const Times& times = times_of(model, device);
  const auto find = [&](int samples) -> const SailorLayerTime* {
    const auto by_size = times.find(samples);
    if (by_size == times.end()) return nullptr;
    const auto layers = by_size->second.find(tensor_parallel_size);
    if (layers == by_size->second.end()) return nullptr;
    const auto found = layers->second.find(layer);
    return found == layers->second.end() ? nullptr : &found->second;
  };
  const SailorLayerTime* const measured = find(micro_batch_size);
  if (measured == nullptr)
    throw InvalidInput(fmt::format("{}_{}_profile.json", model, device),
                       fmt::format("must have layer {} for {} samples and tensor-parallel size {}", layer,
                                   micro_batch_size, tensor_parallel_size),
                       "none");
  SailorLayerTime time = *measured;
  for (int samples = 2 * micro_batch_size; const SailorLayerTime* const more = find(samples); samples *= 2) {
    time.forward = std::min(time.forward, more->forward);
    time.backward = std::min(time.backward, more->backward);
  }
  return time;
}

const SailorLayerSize& SailorData::layer_size(const std::string& model, int tensor_parallel_size, int layer) const {
  const auto sizes = sizes_.find(model);
  if (sizes == sizes_.end() || !sizes->second.contains(tensor_parallel_size) ||
      !sizes->second.at(tensor_parallel_size).contains(layer))
    throw InvalidInput("llm_info.json", "must have the layer",
                       fmt::format("{}, tensor-parallel size {}, layer {}", model, tensor_parallel_size, layer));
  return sizes->second.at(tensor_parallel_size).at(layer);
}

const SailorData::Curve* SailorData::curve_of(const std::string& from, const std::string& to, int pairs) const {
  for (const int known :
       {pairs, 1, 8, 4}) {  // another count if this one was not measured; a host has one card, so it matters little
    const auto found = curves_.find(key(from, to, known));
    if (found != curves_.end()) return &found->second;
  }
  return nullptr;
}

double SailorData::link_bytes_per_second(const std::string& from, const std::string& to, int pairs,
                                         double bytes) const {
  double fastest = 0;
  for (const Curve* const curve : {curve_of(from, to, pairs), curve_of(to, from, pairs)}) {
    if (curve == nullptr) continue;
    const double doublings = std::log2(std::max(bytes / 1e6, 1e-3));
    const double by_curve =
        1e9 * (curve->quadratic * doublings * doublings + curve->linear * doublings + curve->constant);
    fastest = std::max(fastest, std::min(std::max(by_curve, 1e6), curve->plateau_bytes_per_second));
  }
  if (fastest == 0)
    throw InvalidInput("multizone_bandwidths_het.json", fmt::format("must have a link from {} to {}", from, to),
                       "without one");
  return fastest;
}

}  // namespace frostpipe
