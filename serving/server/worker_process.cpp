#include "serving/server/worker_process.h"

#include <sys/wait.h>

#include <csignal>

#include "base/process/start_child.h"
#include "serving/server/worker/run_worker.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

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

bool WorkerProcess::send(const BatchOrder& order, const BatchBuffer& buffer) {
  const bool is_new = known_buffers_.insert(order.buffer).second;
  return channel_.send(to_text({.order = order}), is_new ? buffer.descriptor() : -1);
}

std::optional<FromWorker> WorkerProcess::receive() {
  const auto text = channel_.receive(0ms);
  return text ? std::optional(from_worker_from_text(text->text)) : std::nullopt;
}

}  // namespace frostpipe
