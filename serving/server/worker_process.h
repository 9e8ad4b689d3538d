#pragma once
#include <sys/types.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/process/control_channel.h"
#include "serving/server/worker/worker_messages.h"

namespace frostpipe {

/// A batch that was sent to a worker and not reported yet.
struct OrderedBatch {
  std::int64_t batch = 0;
  /// The time at which it became the worker's first batch, and so could be computed; on the steady clock.
  Nanoseconds first_ns = 0;
  Nanoseconds planned_ns = 0;  // duration by the plan
};

/// The process of one virtual device, as seen by its server.
class WorkerProcess {
 public:
  /// Starts the process and lets it load its partition. The calling thread must outlive the process.
  WorkerProcess(const std::vector<std::string>& command, const PartitionLoad& load, const std::string& name);
  /// Kills the process.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  int descriptor() const { return channel_.descriptor(); }
  /// Orders a batch after those in `orders`, and appends it there. The order is sent once few enough of those before it
  /// are left, since the channel holds only some hundreds. The buffer's descriptor must stay open until then.
  void order(const BatchOrder& order, const BatchBuffer& buffer, Nanoseconds planned_ns);
  /// Sends the orders that may be sent. Must be called after `orders` has lost one, and now and then besides.
  void send_orders();
  /// Returns the next message, if there is one; nothing if the worker is gone.
  std::optional<FromWorker> receive();
  bool is_gone() const { return channel_.closed(); }

  bool is_loaded = false;
  std::deque<OrderedBatch> orders;  // not reported yet, in their order

 private:
  struct UnsentOrder {
    BatchOrder order;
    int descriptor = -1;  // of the buffer
  };

  pid_t pid_;
  ControlChannel channel_;
  std::deque<UnsentOrder> unsent_;  // the last of `orders`
  std::set<int> known_buffers_;
};

}  // namespace frostpipe
