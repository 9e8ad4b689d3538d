#pragma once
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace c10d {
class Backend;
}  // namespace c10d

namespace frostpipe {

/// The c10d process groups of a rank, which are aborted together. Any thread may call these functions.
class ProcessGroups {
 public:
  ProcessGroups();
  /// Waits for the aborts in progress.
  ~ProcessGroups();
  bool are_aborted() const { return are_aborted_; }
  /// Adds a group. If the groups have been aborted already, this one is aborted at once.
  void add(const c10::intrusive_ptr<c10d::Backend>& backend);
  /// Starts to abort all groups and returns at once. They must be aborted in parallel: NCCL frees a group's memory when
  /// it is aborted, for which CUDA waits for the whole device, and so for the messages of the other groups.
  void begin_abort();
  /// Aborts all groups and waits until that is done.
  void abort();

 private:
  void wait();
  void start_abort(c10::intrusive_ptr<c10d::Backend> backend);

  std::mutex mutex_;
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> backends_;
  std::atomic<bool> are_aborted_ = false;
  std::vector<std::thread> aborting_;
};

}  // namespace frostpipe
