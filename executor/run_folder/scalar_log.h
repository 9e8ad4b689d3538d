#pragma once
#include <filesystem>
#include <vector>

#include "plan/summary.h"

namespace frostpipe {

/// Figures of a run as it goes, for other programs to watch: FOLDER/scalars.jsonl, one JSON object per line with
/// "step", "wall_time" (seconds since 1970) and the figures by name; and the same in FOLDER/tensorboard/, an event file
/// that TensorBoard reads.
///
/// Appends, so that the rank that knows the figures may change: each has a log of its own on the same folder. Steps
/// that are done again come again; both kinds of reader take the later ones. What cannot be written (a full disk) is
/// left out: a log stops no training.
class ScalarLog {
 public:
  explicit ScalarLog(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void write(int step, const std::vector<NamedValue>& values) const;
  /// Removes what an earlier run has left.
  void begin_anew() const;

 private:
  std::filesystem::path folder_;
};

/// One record of an event file: length, its checksum, the data, its checksum (TensorFlow's TFRecord).
std::string event_record(std::string_view data);

}  // namespace frostpipe
