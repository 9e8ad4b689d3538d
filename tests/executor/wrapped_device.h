#pragma once
#include <memory>
#include <utility>

#include "executor/device/device.h"

namespace frostpipe::test {

/// Forwards everything to another device, for tests that change one function.
class WrappedDevice : public ComputeDevice {
 public:
  explicit WrappedDevice(std::unique_ptr<ComputeDevice> device) : device_(std::move(device)) {}
  std::string type() const override { return device_->type(); }
  std::string description() const override { return device_->description(); }
  at::Device torch_device() const override { return device_->torch_device(); }
  void set_num_threads(int threads) override { device_->set_num_threads(threads); }
  std::string identity() const override { return device_->identity(); }
  c10::intrusive_ptr<c10d::Backend> make_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                               const std::string& address) override;
  void synchronize() override { device_->synchronize(); }
  void first_mark() override { device_->first_mark(); }
  void mark() override { device_->mark(); }
  std::vector<Nanoseconds> marked_ns() override { return device_->marked_ns(); }
  void set_memory_limit(std::optional<Bytes> limit, const std::string& who) override {
    device_->set_memory_limit(limit, who);
  }
  Bytes live_bytes() override { return device_->live_bytes(); }
  Bytes peak_bytes() override { return device_->peak_bytes(); }
  void reset_peak() override { device_->reset_peak(); }
  void expect_one_length(bool has_one_length) override { device_->expect_one_length(has_one_length); }
  std::unique_ptr<DeviceGraphs> make_graphs() override { return device_->make_graphs(); }
  void release_kept_memory() override { device_->release_kept_memory(); }

 private:
  std::unique_ptr<ComputeDevice> device_;
};

/// A device that claims to be shared with another rank.
std::unique_ptr<ComputeDevice> shared(std::unique_ptr<ComputeDevice> device);

}  // namespace frostpipe::test
