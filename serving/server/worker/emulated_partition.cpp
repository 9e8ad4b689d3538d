#include <algorithm>
#include <chrono>
#include <thread>

#include "serving/server/worker/partition_compute.h"

namespace frostpipe {
namespace {

class EmulatedPartition final : public PartitionCompute {
 public:
  explicit EmulatedPartition(std::vector<Nanoseconds> compute_ns) : compute_ns_(std::move(compute_ns)) {}
  void compute(const BatchOrder& order, BatchBuffer&) override {
    free_ns_ = std::max(free_ns_, order.ordered_ns) + compute_ns_.at(order.lengths.size() - 1);
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(free_ns_)));
  }

 private:
  std::vector<Nanoseconds> compute_ns_;
  Nanoseconds free_ns_ = 0;
};

}  // namespace

std::unique_ptr<PartitionCompute> emulated_partition(const PartitionLoad& load) {
  return std::make_unique<EmulatedPartition>(load.compute_ns);
}

}  // namespace frostpipe
