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

/// c10d's groups of a rank, which end together. Any thread may call it.
class ProcessGroups {
 public:
  ProcessGroups();
  /// Waits for those that are being ended.
  ~ProcessGroups();
  bool have_ended() const { return have_ended_; }
  /// A group that comes too late ends at once.
  void add(const c10::intrusive_ptr<c10d::Backend>& backend);
  /// Returns at once. All together: NCCL gives back the memory of a group that it has ended, for which CUDA waits for
  /// the whole device, and so for the other groups' messages.
  void begin_to_end();
  /// Returns when they have ended.
  void end();

 private:
  void wait();
  void start_to_end(c10::intrusive_ptr<c10d::Backend> backend);

  std::mutex mutex_;
  std::vector<c10::weak_intrusive_ptr<c10d::Backend>> backends_;
  std::atomic<bool> have_ended_ = false;
  std::vector<std::thread> ending_;
};

}  // namespace frostpipe
