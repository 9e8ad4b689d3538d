#include "executor/training/checkpoints/checkpoint_folder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "executor/checkpoint/scattered_checkpoint.h"
#include "executor/communication/group.h"
#include "executor/communication/hosts.h"
#include "executor/elastic/addresses.h"
#include "executor/training/policy/resume_point.h"

namespace frostpipe {
namespace {

/// The newest checkpoint that the folders have together, and the parts of it that each rank's folder has.
struct Parts {
  GatheredCheckpoint checkpoint;
  std::vector<std::optional<std::set<std::string>>> layers;  // names by rank; not set if the rank's folder lacks the
                                                             // checkpoint
};

std::optional<Parts> known_parts(const CheckpointFolder& folder, const std::filesystem::path& root,
                                 Communicator& communicator) {
  const bool looks = folder.is_first_of_its_folder(communicator.rank());
  std::vector<std::vector<CheckpointShare>> shares;
  for (const std::string& text : communicator.gather(to_text(looks ? shares_in(root) : std::vector<CheckpointShare>())))
    shares.push_back(shares_from_text(text));
  std::optional<GatheredCheckpoint> newest = newest_gathered(shares);
  if (!newest) return std::nullopt;
  Parts parts{.checkpoint = std::move(*newest), .layers = {}};
  for (const std::vector<CheckpointShare>& of_rank : shares) {
    auto& layers = parts.layers.emplace_back();
    for (const CheckpointShare& share : of_rank) {
      if (share.step != parts.checkpoint.step || share.run != parts.checkpoint.run) continue;
      layers.emplace();
      for (const CheckpointFile& file : share.whole) layers->insert(file.name);
    }
  }
  return parts;
}

/// Copies a file of `bytes` bytes from rank `from` to the same path on the ranks `receivers`. On other ranks it does
/// nothing.
void pass_on(const std::filesystem::path& file, Bytes bytes, int from, const std::vector<int>& receivers,
             Communicator& communicator) {
  const int self = communicator.rank();
  const std::string what = fmt::format("bringing {} together", file.filename().string());
  Group& group = communicator.control_group();
  if (self == from) {
    std::string content = read_text_file(file, kAnySize);
    const at::Tensor values = at::from_blob(content.data(), {bytes}, at::kByte);
    for (const int receiver : receivers) group.send(values, receiver, /*tag=*/0, what).wait();
  } else if (std::find(receivers.begin(), receivers.end(), self) != receivers.end()) {
    const at::Tensor values = at::empty({bytes}, at::kByte);
    group.receive(values, from, /*tag=*/0, what).wait();
    write_file_atomically(file, {static_cast<const char*>(values.data_ptr()), static_cast<std::size_t>(bytes)});
  }
}

[[noreturn]] void refuse_to_replace(const std::filesystem::path& path, const std::string& host) {
  throw InvalidInput(fmt::format(
      "{}: on host {} it is a checkpoint of another run, or damaged, which the one of the other hosts would "
      "replace. Move it to another folder there, and start the run again",
      path.string(), host));
}

}  // namespace

CheckpointFolder shared_checkpoint_folder(const std::filesystem::path& root, int world_size) {
  return {.root = root, .folder_of_rank = std::vector<int>(world_size, 0), .hosts = {}, .start = {}};
}

CheckpointFolder checkpoint_folder_of(const std::filesystem::path& root, Communicator& communicator) {
  const int self = communicator.rank();
  CheckpointFolder folder{
      .root = root,
      .folder_of_rank = hosts_of_ranks(communicator),
      .hosts = {},
      .start = communicator.broadcast(std::to_string(std::chrono::system_clock::now().time_since_epoch().count()), 0)};
  const std::vector<int> hosts = folder.folder_of_rank;
  const auto mark_of = [&](int host) { return root / fmt::format("host-{}-{}", folder.start, host); };
  std::error_code ignored;
  const bool marks = folder.is_first_of_its_folder(self);
  try {
    if (marks) write_file_atomically(mark_of(hosts[self]), "");
  } catch (const RuntimeFailure&) {  // checkpoints cannot be written there either, and their message gives the reason
  }
  communicator.control_group().barrier();
  std::vector<double> folder_of_rank(hosts.size(), 0.0);
  for (folder_of_rank[self] = 0; folder_of_rank[self] < hosts[self]; ++folder_of_rank[self])
    if (std::filesystem::exists(mark_of(static_cast<int>(folder_of_rank[self])), ignored)) break;
  folder_of_rank = communicator.sum(std::move(folder_of_rank));
  if (marks) std::filesystem::remove(mark_of(hosts[self]), ignored);
  folder.folder_of_rank.assign(folder_of_rank.begin(), folder_of_rank.end());
  if (std::any_of(folder.folder_of_rank.begin(), folder.folder_of_rank.end(), [](int index) { return index != 0; }))
    folder.hosts = communicator.gather(host_name());
  return folder;
}

void bring_checkpoint_together(const CheckpointFolder& folder, const std::filesystem::path& from,
                               Communicator& communicator) {
  const std::optional<Parts> parts = known_parts(folder, from, communicator);
  if (!parts) return;
  const GatheredCheckpoint& checkpoint = parts->checkpoint;
  const bool is_seen_here = std::filesystem::exists(from / "checkpoint.json");
  const bool is_checkpoint = communicator.sum({is_seen_here ? 1.0 : 0.0}).front() > 0;
  const std::filesystem::path path = is_checkpoint ? from : checkpoint_path(from, checkpoint.step);
  const int self = communicator.rank();
  const auto receivers_of = [&](const std::string& layer) {
    std::vector<int> receivers;
    for (int rank = 0; rank < communicator.world_size(); ++rank) {
      const auto& layers = parts->layers[rank];
      const bool has = layers && (layer.empty() || layers->contains(layer));
      if (folder.is_first_of_its_folder(rank) && !has) receivers.push_back(rank);
    }
    return receivers;
  };
  const std::vector<int> without_any = receivers_of("");
  const bool has_none = std::find(without_any.begin(), without_any.end(), self) != without_any.end();
  std::error_code ignored;
  if (has_none && lies_in(folder.root, path)) std::filesystem::remove_all(path, ignored);
  const bool would_replace = has_none && std::filesystem::exists(path / kCheckpointManifest, ignored);
  for (const std::string& place : communicator.gather(would_replace ? host_name() : ""))
    if (!place.empty()) refuse_to_replace(path, place);
  for (const char* const name : {"plan.json", "run.json", "checkpoint.json"}) {
    if (without_any.empty()) break;
    const bool gives = self == checkpoint.manifest_rank;
    const std::string content =
        communicator.broadcast(gives ? read_text_file(path / name, kAnySize) : "", checkpoint.manifest_rank);
    if (has_none) write_file_atomically(path / name, content);
  }
  std::vector<CheckpointFile> layers;
  bool lacked_any = false;
  for (const GatheredCheckpoint::Source& source : checkpoint.layers) {
    const std::vector<int> receivers = receivers_of(source.file.name);
    pass_on(path / source.file.name, source.file.bytes, source.rank, receivers, communicator);
    lacked_any = lacked_any || std::find(receivers.begin(), receivers.end(), self) != receivers.end();
    layers.push_back(source.file);
  }
  if (lacked_any) complete_manifest(path, layers);
  communicator.control_group().barrier();  // other ranks read files that the first rank of their folder has written
}

void follow_first_rank(const CheckpointFolder& folder, const Checkpoint& chosen, int rank) {
  if (rank == 0 || !folder.is_first_of_its_folder(rank)) return;
  remove_unfinished_checkpoints(folder.root);
  keep_checkpoints_up_to(chosen.folder, chosen.step, folder.root);
}

}  // namespace frostpipe
