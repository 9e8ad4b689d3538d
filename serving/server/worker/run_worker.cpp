#include "serving/server/worker/run_worker.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>

#include "base/error.h"
#include "base/process/control_channel.h"
#include "base/steady_clock.h"
#include "serving/server/worker/partition_compute.h"

namespace frostpipe {
namespace {

constexpr auto kWait = std::chrono::hours(1);  // ends early if the channel is closed

/// Returns the next message; nothing if the server is gone.
std::optional<ControlText> next_text(ControlChannel& channel) {
  while (!channel.closed()) {
    if (auto text = channel.receive(kWait)) return text;
  }
  return std::nullopt;
}

/// Throws InvalidInput if a folder has changed since the server hashed it. Must be called after loading, so that it
/// finds any change made before the end of loading: a worker that loads from an overwritten folder would compute with
/// another model than the workers that have loaded before.
void require_same_folders(const PartitionLoad& load) {
  for (std::size_t i = 0; i < load.folder_bytes.size(); ++i) {
    if (read_folder_bytes(load.folders[i]) != load.folder_bytes[i])
      throw InvalidInput(load.folders[i],
                         "must hold the same files as when the server read it, which its other workers go on with; "
                         "SIGHUP has all workers load what it holds then",
                         "overwritten");
  }
}

class Worker {
 public:
  Worker(ControlChannel& channel, PartitionLoad load, const LoadPartition& load_partition)
      : channel_(channel), load_(std::move(load)) {
    compute_ = load_.folders.empty() ? emulated_partition(load_) : load_partition(load_);
    require_same_folders(load_);
  }

  void take(ControlText text) {
    const BatchOrder order = to_worker_from_text(text.text).order.value();
    if (text.descriptor.is_open())
      buffers_.insert_or_assign(order.buffer, BatchBuffer::open(std::move(text.descriptor), load_.shape));
    BatchReport report{.batch = order.batch, .begin_ns = steady_now_ns()};
    try {
      compute_->compute(order, buffers_.at(order.buffer));
    } catch (const std::exception& error) {
      report.failure = error.what();
    }
    report.end_ns = steady_now_ns();
    channel_.send(to_text({.report = report}));
  }

 private:
  ControlChannel& channel_;
  PartitionLoad load_;
  std::unique_ptr<PartitionCompute> compute_;
  std::map<int, BatchBuffer> buffers_;
};

}  // namespace

bool is_serving_worker() { return std::getenv(kServingWorkerVariable) != nullptr; }

int run_serving_worker(const LoadPartition& load_partition) {
  ControlChannel channel(std::atoi(std::getenv(kServingWorkerVariable)));
  unsetenv(kServingWorkerVariable);
  const auto first = next_text(channel);
  if (!first) return 0;
  std::optional<Worker> worker;
  try {
    worker.emplace(channel, to_worker_from_text(first->text).load.value(), load_partition);
  } catch (const std::exception& error) {
    channel.send(to_text({.loaded = std::string(error.what())}));
    return 1;
  }
  channel.send(to_text({.loaded = std::string()}));
  while (auto text = next_text(channel)) worker->take(std::move(*text));
  return 0;
}

}  // namespace frostpipe
