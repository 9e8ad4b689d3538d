#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serving/server/worker_process.h"
#include "serving/simulator/serving_engine.h"

namespace frostpipe {

/// The workers of one pool of virtual devices, and what they have left to do. A worker that is lost is started again,
/// at most three times in a row without a batch computed in between. Where the system has no room for it (descriptors,
/// processes), that is tried again every second, which does not count.
class WorkerPool {
 public:
  /// Starts them, on the devices from load.device_index on. `reserved` is what the data plane knows of the pool: a
  /// device without a worker that has loaded is reserved for ever.
  WorkerPool(Pool& reserved, std::vector<std::string> command, PartitionLoad load, std::string name);

  /// What a look at the workers tells.
  struct News {
    std::vector<std::pair<int, BatchReport>> reports;  // by device
    std::vector<std::int64_t> lost_batches;
    std::vector<std::string> notes;  // sentences for people
  };
  /// Throws RuntimeFailure where a worker cannot load its partition, unless it is one that was started again.
  News look(Nanoseconds now_ns);

  /// The data plane has reserved a device for a batch.
  void reserve(std::int64_t batch, const RouteLeg& leg);
  /// Nothing of the batch is left to do here; corrects until when the devices are reserved.
  void release(std::int64_t batch, Nanoseconds now_ns);
  /// Gives the batch to the device that is reserved for it, or, where its worker is gone, to another one of the pool.
  /// False: there is none.
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
  void start_again(int device, News& news);
  void lose(int device, const std::string& how, News& news);
  void take(int device, const FromWorker& said, Nanoseconds now_ns, News& news);
  bool is_stuck(int device) const;
  void correct(int device, Nanoseconds now_ns);
  std::string name_of(int device) const;

  Pool& reserved_;
  std::vector<std::string> command_;
  PartitionLoad load_;
  std::string name_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;     // by device; null: given up, or for now
  std::vector<std::optional<Nanoseconds>> start_again_ns_;  // by device, of the steady clock: where it is null for now
  std::vector<std::vector<Reservation>> reservations_;      // by device, in the order of the data plane
  std::vector<int> losses_;                                 // in a row, by device
  std::vector<Nanoseconds> busy_ns_;
};

}  // namespace frostpipe
