#pragma once
#include <sys/types.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/process/control_channel.h"
#include "serving/server/worker/worker_messages.h"

namespace frostpipe {

/// A batch that a worker was given and has not reported.
struct OrderedBatch {
  std::int64_t batch = 0;
  Nanoseconds ordered_ns = 0;  // of the steady clock
  Nanoseconds compute_ns = 0;  // as planned
};

/// The process behind one virtual device, as its server sees it.
class WorkerProcess {
 public:
  /// Starts it, and lets it load its partition. The thread that calls this outlives the process.
  WorkerProcess(const std::vector<std::string>& command, const PartitionLoad& load, const std::string& name);
  /// Kills it.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  int descriptor() const { return channel_.descriptor(); }
  /// False where the worker is gone, or has taken nothing for so long that there is no room.
  bool send(const BatchOrder& order, const BatchBuffer& buffer);
  /// The next text, if one is there; nothing either where the worker is gone.
  std::optional<FromWorker> receive();
  bool is_gone() const { return channel_.closed(); }

  bool is_loaded = false;
  std::deque<OrderedBatch> orders;

 private:
  pid_t pid_;
  ControlChannel channel_;
  std::set<int> known_buffers_;
};

}  // namespace frostpipe
