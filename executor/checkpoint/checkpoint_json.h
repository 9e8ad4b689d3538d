#pragma once
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "executor/checkpoint/checkpoint.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, RunSettings>& settings) {
  archive("model_fingerprint", settings.model_fingerprint);
  archive("data_fingerprint", settings.data_fingerprint);
  archive("data_shards", settings.data_shards, json::at_least(1));
  archive("seed", settings.seed);
  archive("global_batch_size", settings.global_batch_size, json::at_least(1));
  archive("num_steps", settings.num_steps, json::at_least(0));
  archive("optimizer", settings.optimizer);
  archive("dtype", settings.dtype);
  archive("frozen_dtype", settings.frozen_dtype);
  archive("learning_rate", settings.learning_rate);
  archive("learning_rate_warm_up", settings.learning_rate_warm_up);
  archive("weight_decay", settings.weight_decay);
  archive("gradient_clip", settings.gradient_clip);
  archive("decay", settings.decay);
  archive("dropout", settings.dropout);
  archive("label_smoothing", settings.label_smoothing);
  archive("group_by_length", settings.group_by_length, json::MayBeMissing());
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, CheckpointFile>& file) {
  archive("name", file.name);
  archive("bytes", file.bytes, json::at_least(0));
  archive("hash", file.hash);
  archive("host", file.host, json::Otherwise<std::string>{""});
}

/// Returns a manifest's text in its envelope. Its field `hash` becomes the hash of that text with an empty `hash`.
template <class Manifest>
std::string write_sealed(std::string_view format, Manifest manifest) {
  manifest.hash.clear();
  manifest.hash = content_hash(json::write_envelope(format, manifest));
  return json::write_envelope(format, manifest);
}

/// Reads a manifest that write_sealed() wrote. `path` is for errors. Throws InvalidInput if the text breaks the format
/// or its hash is wrong.
template <class Manifest>
Manifest read_sealed(std::string_view format, const std::string& text, const std::filesystem::path& path) {
  auto manifest = json::read_envelope<Manifest>(text, path.string(), format);
  if (write_sealed(format, manifest) != json::write_envelope(format, manifest)) refuse_changed_file(path);
  return manifest;
}

}  // namespace frostpipe
