#include "executor/checkpoint/scattered_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace frostpipe {
namespace {

nlohmann::json json_of(const std::vector<CheckpointFile>& files) {
  nlohmann::json all = nlohmann::json::array();
  for (const CheckpointFile& file : files) all.push_back({file.name, file.bytes, file.hash, file.host});
  return all;
}

std::vector<CheckpointFile> files_of(const nlohmann::json& json) {
  std::vector<CheckpointFile> files;
  for (const nlohmann::json& one : json)
    files.push_back({.name = one.at(0), .bytes = one.at(1), .hash = one.at(2), .host = one.at(3)});
  return files;
}

std::string run_of(const Checkpoint& checkpoint) {
  std::string text = checkpoint.plan_fingerprint + "\n" + checkpoint.attempt;
  for (const auto& [name, value] : values_by_name(checkpoint.settings)) text += fmt::format("\n{} {}", name, value);
  return fingerprint(text);
}

CheckpointShare share_of(const Checkpoint& checkpoint) {
  CheckpointShare share{.step = checkpoint.step, .run = run_of(checkpoint), .whole = {}, .lacks = {}};
  for (int layer = 0; layer < num_layers(checkpoint); ++layer) {
    const CheckpointFile& file = entry_of(checkpoint, layer_file_name(layer));
    try {
      open_layer(checkpoint, layer);
      share.whole.push_back(file);
    } catch (const InvalidInput&) {
      share.lacks.push_back(file);
    }
  }
  return share;
}

/// The layers of one checkpoint that the hosts together have, and those that none of them has.
struct Gathering {
  GatheredCheckpoint checkpoint;
  std::map<std::string, GatheredCheckpoint::Source> whole;  // by name of the file
  std::map<std::string, std::string> lost;                  // names of the hosts that wrote the files, by file
};

Gathering gather(const std::vector<std::vector<CheckpointShare>>& shares, const CheckpointShare& like) {
  Gathering all{
      .checkpoint = {.step = like.step, .run = like.run, .layers = {}, .manifest_rank = -1}, .whole = {}, .lost = {}};
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const int rank = static_cast<int>(i);
    for (const CheckpointShare& share : shares[i]) {
      if (share.step != like.step || share.run != like.run) continue;
      if (all.checkpoint.manifest_rank < 0) all.checkpoint.manifest_rank = rank;
      for (const CheckpointFile& file : share.whole) all.whole.try_emplace(file.name, file, rank);
      for (const CheckpointFile& file : share.lacks) all.lost.try_emplace(file.name, file.host);
    }
  }
  for (const auto& [name, source] : all.whole) {
    all.lost.erase(name);
    all.checkpoint.layers.push_back(source);
  }
  return all;
}

std::string sentence_of(const Gathering& newest) {
  std::string files;
  std::set<std::string> hosts;
  for (const auto& [name, host] : newest.lost) {
    files += (files.empty() ? "" : ", ") + name;
    if (!host.empty()) hosts.insert(host);
  }
  std::string names;
  for (const std::string& host : hosts) names += (names.empty() ? "" : ", ") + host;
  return fmt::format(
      "checkpoint of step {}: no host has {} whole{}. Start the run on the hosts that wrote it, or on others with "
      "their "
      "folders of checkpoints, or start over with --resume no",
      newest.checkpoint.step, files, names.empty() ? "" : fmt::format(", which host {} wrote", names));
}

}  // namespace

std::vector<CheckpointShare> shares_in(const std::filesystem::path& root) {
  std::vector<CheckpointShare> shares;
  const bool is_checkpoint = std::filesystem::exists(root / "checkpoint.json");
  for (const std::filesystem::path& folder : is_checkpoint ? std::vector{root} : checkpoints_in(root)) {
    try {
      shares.push_back(share_of(read_checkpoint(folder)));
    } catch (const InvalidInput&) {  // damaged
    }
  }
  return shares;
}

std::string to_text(const std::vector<CheckpointShare>& shares) {
  nlohmann::json all = nlohmann::json::array();
  for (const CheckpointShare& share : shares)
    all.push_back({share.step, share.run, json_of(share.whole), json_of(share.lacks)});
  return all.dump();
}

std::vector<CheckpointShare> shares_from_text(const std::string& text) {
  std::vector<CheckpointShare> shares;
  for (const nlohmann::json& one : nlohmann::json::parse(text))
    shares.push_back({.step = one.at(0), .run = one.at(1), .whole = files_of(one.at(2)), .lacks = files_of(one.at(3))});
  return shares;
}

std::optional<GatheredCheckpoint> newest_gathered(const std::vector<std::vector<CheckpointShare>>& shares) {
  std::vector<const CheckpointShare*> newest_first;
  for (const std::vector<CheckpointShare>& of_rank : shares)
    for (const CheckpointShare& share : of_rank) newest_first.push_back(&share);
  std::stable_sort(newest_first.begin(), newest_first.end(),
                   [](const CheckpointShare* a, const CheckpointShare* b) { return a->step > b->step; });
  for (const CheckpointShare* const share : newest_first) {
    Gathering all = gather(shares, *share);
    if (all.lost.empty()) return std::move(all.checkpoint);
  }
  if (newest_first.empty()) return std::nullopt;
  throw InvalidInput(sentence_of(gather(shares, *newest_first.front())));
}

void complete_manifest(const std::filesystem::path& folder, const std::vector<CheckpointFile>& layers) {
  write_file_atomically(folder / "checkpoint.json", to_texts(read_checkpoint(folder), layers).checkpoint);
}

}  // namespace frostpipe
