#pragma once
#include <functional>
#include <optional>
#include <string>

#include "executor/communication/communicator.h"
#include "executor/training/policy/checkpoint_schedule.h"
#include "operators/checkpoint/net_checkpoint.h"
#include "operators/training/layer_mover.h"

namespace frostpipe {

/// Decides when a net's checkpoints are due, and writes them while all ranks wait: rank 0 to the run folder.
class NetCheckpoints {
 public:
  /// `options`, `net` and `communicator` outlive this object. `note` gets sentences for people, on rank 0.
  NetCheckpoints(const TrainOptions& options, const NetShape& net, Communicator& communicator,
                 std::function<void(const std::string&)> note);

  /// Before step `step`, on all ranks.
  bool is_due(int step);
  /// Called by all ranks; `collect` gives rank 0 a layer, of each in turn. What goes wrong costs this checkpoint alone,
  /// and is noted. Whether it was written, on rank 0.
  bool write(const NetCheckpoint& snapshot, const std::function<WholeLayer(int layer)>& collect);

 private:
  const TrainOptions& options_;
  const NetShape& net_;
  Communicator& communicator_;
  std::function<void(const std::string&)> note_;
  CheckpointSchedule schedule_;
};

/// On rank 0: what the run goes on from, as TrainOptions::resume says, if it does not begin. Checkpoints that it does
/// not go back to go, and so does the result of an earlier run in its folder. Throws InvalidInput as
/// checkpoint_to_resume does.
std::optional<NetCheckpoint> net_checkpoint_to_resume(const TrainOptions& options, const RunSettings& settings,
                                                      const std::function<void(const std::string&)>& note);

}  // namespace frostpipe
