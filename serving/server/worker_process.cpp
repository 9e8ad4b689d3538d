#include "serving/server/worker_process.h"

#include <sys/wait.h>

#include <csignal>

#include "base/process/start_child.h"
#include "serving/server/worker/run_worker.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

/// Enough for a worker to have its next batch whenever it has reported one.
constexpr std::size_t kMaxSentOrders = 32;

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command, const PartitionLoad& load,
                             const std::string& name)
    : pid_(0), channel_(-1) {
  auto [ours, theirs] = ControlChannel::make_pair();
  pid_ = start_child(
      command,
      {.variables = {{kServingWorkerVariable, std::to_string(theirs.descriptor())}}, .leaves_signals_to_parent = true},
      name);
  channel_ = std::move(ours);
  channel_.send(to_text({.load = load}));
}

WorkerProcess::~WorkerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void WorkerProcess::order(const BatchOrder& order, const BatchBuffer& buffer, Nanoseconds planned_ns) {
  orders.push_back({.batch = order.batch, .first_ns = order.ordered_ns, .planned_ns = planned_ns});
  unsent_.push_back({order, buffer.descriptor()});
  send_orders();
}

void WorkerProcess::send_orders() {
  while (!unsent_.empty() && orders.size() - unsent_.size() < kMaxSentOrders) {
    const auto& [order, descriptor] = unsent_.front();
    const bool is_new = !known_buffers_.contains(order.buffer);
    if (!channel_.send(to_text({.order = order}), is_new ? descriptor : -1)) return;
    known_buffers_.insert(order.buffer);
    unsent_.pop_front();
  }
}

std::optional<FromWorker> WorkerProcess::receive() {
  const auto text = channel_.receive(0ms);
  return text ? std::optional(from_worker_from_text(text->text)) : std::nullopt;
}

}  // namespace frostpipe
