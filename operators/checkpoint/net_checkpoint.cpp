#include "operators/checkpoint/net_checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "executor/checkpoint/checkpoint_json.h"

namespace frostpipe {
namespace {

constexpr std::string_view kNetFormat = "frostpipe.net_checkpoint", kNetRun = "run.json";

/// checkpoint.json.
struct NetManifest {
  int step = 0;
  RunSettings settings;
  int frozen_layers = 0;
  double epoch_loss = 0;
  std::vector<CheckpointFile> files;
  std::string hash;  // of this text with an empty hash
};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NetManifest>& manifest) {
  archive("step", manifest.step, json::at_least(0));
  archive("settings", manifest.settings);
  archive("frozen_layers", manifest.frozen_layers, json::at_least(0));
  archive("epoch_loss", manifest.epoch_loss);
  archive("files", manifest.files);
  archive("hash", manifest.hash);
}

}  // namespace

bool is_net_checkpoint(const std::filesystem::path& folder) {
  const auto json =
      nlohmann::json::parse(read_text_file(folder / kCheckpointManifest), nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("format", nlohmann::json()) == kNetFormat;
}

void write_net_manifest(NetCheckpoint checkpoint, const CheckpointFile& state, const std::filesystem::path& folder) {
  const std::string run = to_json(checkpoint.run);
  write_file_atomically(folder / kNetRun, run);
  write_file_atomically(folder / kCheckpointManifest,
                        write_sealed(kNetFormat, NetManifest{checkpoint.step,
                                                             std::move(checkpoint.settings),
                                                             checkpoint.frozen_layers,
                                                             checkpoint.epoch_loss,
                                                             {file_of(kNetRun, run), state},
                                                             {}}));
}

NetCheckpoint read_net_checkpoint(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kCheckpointManifest;
  auto manifest = read_sealed<NetManifest>(kNetFormat, read_text_file(path), path);
  NetRun run = net_run_from_json(read_listed(manifest.files, kNetRun, folder), (folder / kNetRun).string());
  return {.step = manifest.step,
          .settings = std::move(manifest.settings),
          .frozen_layers = manifest.frozen_layers,
          .epoch_loss = manifest.epoch_loss,
          .files = std::move(manifest.files),
          .run = std::move(run),
          .folder = folder};
}

SafetensorsFile open_state(const NetCheckpoint& checkpoint) {
  return open_listed(entry_of(checkpoint.files, kNetStateFile, checkpoint.folder), checkpoint.folder);
}

}  // namespace frostpipe
