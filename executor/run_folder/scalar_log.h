#pragma once
#include <filesystem>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// Figures of a run in progress, for other programs: FOLDER/scalars.jsonl, one JSON object per line with "step",
/// "wall_time" (seconds since 1970) and the figures by name; and the same figures in FOLDER/tensorboard/, an event file
/// for TensorBoard.
///
/// It appends, so that different ranks can write the figures: each has a log of its own on the same folder. Steps that
/// are repeated are written again; readers of both files use the later ones. Write errors (a full disk) are ignored, so
/// that a log never stops training.
class ScalarLog {
 public:
  explicit ScalarLog(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Appends a step's figures. In scalars.jsonl, those that are not finite are null.
  void write(int step, const std::vector<NamedValue>& values) const;
  /// Removes the files of an earlier run.
  void begin_anew() const;

 private:
  std::filesystem::path folder_;
};

/// Returns one record of an event file (TensorFlow's TFRecord): the data's length, the length's checksum, the data, the
/// data's checksum.
std::string event_record(std::string_view data);

}  // namespace frostpipe
