#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serving/data_plane/serving_engine.h"
#include "serving/server/worker_process.h"

namespace frostpipe {

/// The workers of one pool of virtual devices, with their outstanding batches. A lost worker is restarted, at most
/// three times in a row without a computed batch in between. If the system lacks resources for that (descriptors,
/// processes), it is retried every second; these retries do not count.
class WorkerPool {
 public:
  /// Starts the workers, on devices from load.device_index on. `reserved` is the data plane's state of the pool. A
  /// device without a loaded worker is reserved there forever, and if the last batches took longer than planned, its
  /// times become longer, at most by the factor `max_slowdown`.
  WorkerPool(Pool& reserved, std::vector<std::string> command, PartitionLoad load, std::string name,
             double max_slowdown);

  /// The results of poll().
  struct Events {
    std::vector<std::pair<int, BatchReport>> reports;  // by device
    std::vector<std::int64_t> lost_batches;
    std::vector<std::string> notes;  // messages for the user
  };
  /// Processes the workers' messages and losses. Throws RuntimeFailure if a worker cannot load its partition, unless it
  /// was restarted.
  Events poll(Nanoseconds now_ns);

  /// Records that the data plane has reserved a device for a batch.
  void reserve(std::int64_t batch, const RouteLeg& leg);
  /// Records that the batch has no work left in this pool, and corrects the reservations.
  void release(std::int64_t batch, Nanoseconds now_ns);
  /// Sends the batch to the device that is reserved for it or, if its worker is gone, to another one of the pool.
  /// Returns false if there is none.
  bool order(BatchOrder order, const BatchBuffer& buffer);

  bool has_loaded() const;
  bool has_ready_worker() const;
  bool is_ready(int device) const { return workers_[device] && workers_[device]->is_loaded; }
  int size() const { return static_cast<int>(workers_.size()); }
  void add_descriptors(std::vector<int>& descriptors) const;
  Nanoseconds busy_ns(int device) const { return busy_ns_[device]; }

 private:
  struct Reservation {
    std::int64_t batch = 0;
    Nanoseconds begin_ns = 0, compute_ns = 0;
  };
  void start(int device);
  void start_again(int device, Events& events);
  void lose(int device, const std::string& how, Events& events);
  void handle(int device, const FromWorker& message, Nanoseconds now_ns, Events& events);
  bool is_stuck(int device) const;
  void learn_slowdown(double times_planned, Events& events);
  void correct(int device, Nanoseconds now_ns);
  std::string name_of(int device) const;

  Pool& reserved_;
  std::vector<std::string> command_;
  PartitionLoad load_;
  std::string name_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;     // by device; null while there is no worker
  std::vector<std::optional<Nanoseconds>> start_again_ns_;  // by device, on the steady clock: next try to start a
                                                            // worker
  std::vector<std::vector<Reservation>> reservations_;      // by device, in the order of the data plane
  std::vector<int> losses_;                                 // consecutive losses, by device
  std::vector<Nanoseconds> busy_ns_;
  const double max_slowdown_;
  std::vector<double> times_planned_;  // durations of the last batches, relative to the plan's
  bool has_noted_slowdown_ = false;
};

}  // namespace frostpipe
