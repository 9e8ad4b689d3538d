#include "executor/inputs/run_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/system_reason.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

std::string digits_of(const StreamHash& hash) { return fmt::format("{:016x}", hash.value()); }

std::string hash_of_file(const fs::path& path) {
  const Descriptor file = open_regular_file(path);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  StreamHash hash;
  for (;;) {
    const ssize_t count = read(file.number(), buffer.data(), buffer.size());
    if (count == 0) return digits_of(hash);
    if (count > 0)
      hash.add(std::span(buffer).first(static_cast<std::size_t>(count)));
    else if (errno != EINTR)
      throw InvalidInput(fmt::format("{}: {}", path.string(), system_reason(errno)));
  }
}

/// Hashes names and sizes only, since a folder may have many pictures. Hidden files are not read as pictures.
std::string hash_of_folder(const fs::path& folder) {
  std::vector<std::string> entries;
  for (auto at = fs::recursive_directory_iterator(folder); at != fs::recursive_directory_iterator(); ++at) {
    if (at->path().filename().string().starts_with('.'))
      at.disable_recursion_pending();
    else if (at->is_regular_file())
      entries.push_back(fmt::format("{} {}\n", at->path().lexically_relative(folder).string(), at->file_size()));
  }
  std::sort(entries.begin(), entries.end());
  StreamHash hash;
  for (const std::string& entry : entries) hash.add(std::as_bytes(std::span(entry)));
  return digits_of(hash);
}

void add_file(const std::string& what, const fs::path& path, RunInputs& inputs) {
  inputs.values[what] = fs::is_directory(path) ? hash_of_folder(path) : hash_of_file(path);
  inputs.paths[what] = path.string();
}

void add_model(const fs::path& folder, RunInputs& inputs) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string kind = entry.path().extension();
    if (entry.is_regular_file() && (kind == ".json" || kind == ".jinja" || kind == ".txt" || kind == ".safetensors"))
      add_file("--model, " + entry.path().filename().string(), entry.path(), inputs);
  }
}

/// Adds the data and the model; an empty path is none.
void add_files(const fs::path& data, const fs::path& test_data, const fs::path& model, RunInputs& inputs) {
  try {
    if (!data.empty()) add_file("--data", data, inputs);
    if (!test_data.empty()) add_file("--test-data", test_data, inputs);
    if (!model.empty()) add_model(model, inputs);
  } catch (const fs::filesystem_error& error) {
    throw InvalidInput(system_reason(error));
  }
}

/// Returns a freeze rule with all its parameters as text.
std::string text_of(const FreezePolicy& policy) {
  const FreezeOptions& options = policy.options;
  return fmt::format("{}:{} alpha {} warm-up {} interval {} threshold {}", to_string(policy.rule),
                     fmt::join(policy.fixed_layers, ","), options.alpha, options.warm_up_fraction,
                     options.interval_fraction, options.threshold);
}

void add_samples(const SampleOptions& samples, double held_out, RunInputs& inputs) {
  inputs.values["--held-out"] = fmt::format("{}", held_out);
  inputs.values["--max-tokens"] = std::to_string(samples.max_tokens);
  inputs.values["--window-overlap"] = std::to_string(samples.window_overlap);
  inputs.values["--text-column"] = samples.text_column;
  inputs.values["--label-column"] = samples.label_column;
  inputs.values["--loss-on"] = samples.loss_on_all ? "all" : "completions";
  inputs.values["--crop-padding"] = std::to_string(samples.crop_padding);
  inputs.values["--flip"] = samples.flip ? "on" : "off";
}

void add_options(const TrainOptions& options, RunInputs& inputs) {
  inputs.values["--freeze"] = text_of(options.freeze);
  inputs.values["--accuracy-guard"] =
      options.accuracy_tolerance ? fmt::format("{}", *options.accuracy_tolerance) : "none";
  add_samples(options.samples, options.held_out, inputs);
  inputs.values["--checkpoint-every"] = options.checkpoints.every_steps > 0
                                            ? std::to_string(options.checkpoints.every_steps)
                                            : fmt::format("{}min", options.checkpoints.every_minutes);
  inputs.values["--resume"] = options.resume;
}

RunInputs inputs_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {.host = json.at(0), .values = json.at(1), .paths = json.at(2)};
}

}  // namespace

RunInputs run_inputs(const TrainOptions& options, const RunSettings& settings) {
  RunInputs inputs{.host = host_name(), .values = values_by_name(settings), .paths = {}};
  inputs.values.erase("model_fingerprint");  // determined by the files, which give better messages
  inputs.values.erase("data_fingerprint");
  inputs.values["the samples"] = settings.data_fingerprint;  // sorts after the inputs from which the samples are made
  add_options(options, inputs);
  inputs.values["PLAN"] = fingerprint(to_json(options.plan));
  inputs.paths["PLAN"] = options.plan_source;
  if (options.cluster) inputs.values["--cluster"] = fingerprint(to_json(*options.cluster));
  if (const auto& emulation = options.emulation) {
    inputs.values["--profile"] = fingerprint(to_json(emulation->profile));
    inputs.values["--emulated-shrink"] = std::to_string(emulation->shrink);
    inputs.values["--emulated-links"] = emulation->links ? "on" : "off";
  }
  add_files(options.data, options.test_data, options.model, inputs);
  return inputs;
}

RunInputs run_inputs(const MeasureOptions& options) {
  RunInputs inputs{.host = host_name(),
                   .values = {{"--global-batch", std::to_string(options.global_batch_size)},
                              {"--seed", std::to_string(options.seed)},
                              {"--quick", options.quick ? "on" : "off"},
                              {"--cluster", options.links ? "given" : "left out"},
                              {"--threads-per-rank", std::to_string(options.threads_per_rank)},
                              {"--micro-batch-sizes", fmt::format("{}", fmt::join(options.micro_batch_sizes, ","))},
                              {"--tokens", fmt::format("{}", fmt::join(options.tokens, ","))},
                              {"--tensor-parallel", fmt::format("{}", fmt::join(options.tensor_parallel_sizes, ","))},
                              {"--sequence-parallel", options.sequence_parallel ? "on" : "off"},
                              {"--dtype", std::string(to_string(options.dtype))},
                              {"--frozen-dtype", std::string(to_string(options.frozen_dtype.value_or(options.dtype)))},
                              {"--device", options.device}},
                   .paths = {}};
  add_samples(options.samples, options.held_out, inputs);
  add_files(options.data.value_or(fs::path()), options.test_data, options.model, inputs);
  return inputs;
}

std::string to_text(const RunInputs& inputs) { return nlohmann::json{inputs.host, inputs.values, inputs.paths}.dump(); }

void require_equal_inputs(const std::vector<std::string>& texts) {
  const RunInputs first = inputs_from_text(texts.front());
  for (const std::string& text : texts) {
    RunInputs inputs = inputs_from_text(text);
    const auto difference = first_difference(first.values, inputs.values);
    if (!difference) continue;
    inputs.paths.insert(first.paths.begin(), first.paths.end());
    const auto path = inputs.paths.find(difference->name);
    throw InvalidInput(
        fmt::format("host {}: {}", inputs.host, path == inputs.paths.end() ? difference->name : path->second),
        fmt::format("must be the same as on host {} ({})", first.host, difference->one), difference->other);
  }
}

}  // namespace frostpipe
