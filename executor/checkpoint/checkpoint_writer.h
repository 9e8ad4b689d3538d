#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"

namespace frostpipe {

/// A tensor to be written: flat.
struct ImageTensor {
  std::string name;
  std::string dtype;  // safetensors' name
  std::int64_t count = 0;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;  // keeps the data, which does not change any more
};

struct LayerImage {
  int layer = 0;
  bool frozen = false;               // its content is that of its last image, until forget()
  std::vector<ImageTensor> tensors;  // none where the writer has it (has_frozen)
};

/// A rank's part of a checkpoint.
struct CheckpointPart {
  int step = 0;
  std::string attempt;  // equal on all ranks, and no earlier attempt's
  std::vector<LayerImage> layers;
  /// On one rank of those that share the folder: what it completes the checkpoint with when all `num_layers` layers
  /// that they write are there.
  std::optional<Checkpoint> manifest;
  int num_layers = 0;
  std::string host = {};                       // where hosts do not share the folder: this one
  std::vector<CheckpointFile> elsewhere = {};  // layers that the others write
};

/// Writes checkpoints in a thread of its own, one at a time. The ranks that share the folder meet in it: each writes
/// its layers, the one with the manifest waits for them, and renames the folder when all of it has reached the disk. A
/// frozen layer's file is written once and then linked. Hosts that do not share it each have a part of the checkpoint
/// (scattered_checkpoint.h), and do not wait for each other.
///
/// What goes wrong (a full disk, a folder that vanished) costs this checkpoint and nothing else: take_note() says what
/// it was.
class CheckpointWriter {
 public:
  /// Of `keep` checkpoints the oldest go when a new one is whole.
  CheckpointWriter(std::filesystem::path root, int rank, int keep);
  /// Gives up what is not written yet.
  ~CheckpointWriter();

  /// False once the last part is written, or given up.
  bool busy() const;
  /// Must not be busy.
  void start(CheckpointPart part);
  /// Waits until it is no longer busy, for others' layers at most `seconds`.
  void finish(int seconds);
  /// This rank's part of the last checkpoint failed; asked by the one with the manifest, others' do not come any more.
  bool failed() const;
  /// The others' layers will not come: the checkpoint is given up.
  void give_up(const std::string& why);
  /// The checkpoint of that step is not among those that go; for all but the rank with the manifest without effect.
  void hold(std::optional<int> step);
  /// The step of the last checkpoint that this rank has completed; -1 = none.
  int completed() const;
  /// Every place has completed that step's: it stays until there is a newer one of which that is known.
  void completed_everywhere(int step);
  /// The newest of which that is known; -1 = none.
  int completed_everywhere() const;
  /// The run goes on from that step's checkpoint, which every place has; later ones are gone.
  void went_back_to(int step);
  /// A frozen layer's file is there: its next image needs no tensors. Must not be busy.
  bool has_frozen(int layer) const;
  /// A frozen layer may have changed.
  void forget();
  /// A sentence on what went wrong, once.
  std::optional<std::string> take_note();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
