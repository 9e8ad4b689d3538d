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

/// A flat tensor to be written.
struct ImageTensor {
  std::string name;
  std::string dtype;  // safetensors' name
  std::int64_t count = 0;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;  // keeps `data` alive; the data must not change until it is written
};

/// A layer to be written.
struct LayerImage {
  int layer = 0;
  bool frozen = false;               // the layer's content stays the same in later images, until forget()
  std::vector<ImageTensor> tensors;  // may be empty if the writer has the frozen layer's file already (has_frozen)
};

/// A rank's part of a checkpoint.
struct CheckpointPart {
  int step = 0;
  std::string attempt;  // name of this attempt to write: equal on all ranks, and different from earlier ones
  std::vector<LayerImage> layers;
  /// Set on one of the ranks that share the folder. This rank completes the checkpoint when the folder has all the
  /// layers that these ranks write.
  std::optional<Checkpoint> manifest;
  int num_layers = 0;                          // number of these layers; used with `manifest` only
  std::string host = {};                       // this host, if hosts do not share the folder
  std::vector<CheckpointFile> elsewhere = {};  // layers that other hosts write
};

/// Writes checkpoints in a thread, one at a time. Ranks that share the folder write into the same checkpoint: each
/// writes its layers, and the one with the manifest waits for them and renames the folder when all of it is on disk. A
/// frozen layer's file is written once and then hard-linked. Hosts that do not share the folder each write a share of
/// the checkpoint (scattered_checkpoint.h) and do not wait for each other.
///
/// After a failure (a full disk, a folder that vanished) only this checkpoint is missing; take_note() describes it.
class CheckpointWriter {
 public:
  /// Keeps the newest `keep` checkpoints; older ones are removed when a new one is complete.
  CheckpointWriter(std::filesystem::path root, int rank, int keep);
  /// Abandons a checkpoint that is not complete. Waits for the thread, which may be writing this rank's own layers.
  ~CheckpointWriter();

  /// Returns whether a part is being written: true from start() until the part has been written or abandoned.
  bool busy() const;
  /// Starts to write a part. Must not be called while busy.
  void start(CheckpointPart part);
  /// Waits until the writer is not busy. It waits for the layers of other ranks for at most `seconds`, and then
  /// abandons the checkpoint; for this rank's own layers it waits without a limit.
  void finish(int seconds);
  /// True if this rank's part of the last checkpoint failed or was abandoned. The rank with the manifest should then
  /// give_up(), because that part will not come.
  bool failed() const;
  /// Abandons the checkpoint in progress without waiting, because other ranks' layers will not come. `why` is the
  /// reason in take_note().
  void give_up(const std::string& why);
  /// Keeps the checkpoint of that step from being removed, and no longer that of an earlier call; nothing: keeps none.
  /// Has an effect only on the rank with the manifest.
  void hold(std::optional<int> step);
  /// Returns the step of the last checkpoint that this rank has completed; -1 if there is none.
  int completed() const;
  /// Tells the writer that all hosts have completed the checkpoint of that step. It is kept until the same is known of
  /// a newer one.
  void completed_everywhere(int step);
  /// Returns the step of the newest checkpoint that all hosts are known to have completed; -1 if there is none.
  int completed_everywhere() const;
  /// Tells the writer that the run continues from that step's checkpoint, which all hosts have, and that later ones
  /// were removed.
  void set_completed(int step);
  /// True if a frozen layer's file exists, so that its next image needs no tensors. Must not be called while busy.
  bool has_frozen(int layer) const;
  /// Tells the writer that frozen layers may have changed, so their files must be written again. Waits for the thread.
  void forget();
  /// Returns a sentence on the last failure, once.
  std::optional<std::string> take_note();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
