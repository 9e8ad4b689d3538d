#include "operators/training/group_exchange.h"

#include <fmt/format.h>

namespace frostpipe {

GroupExchange::GroupExchange(Group& group, const OperatorPlan& plan, const OperatorTasks& tasks)
    : group_(group), plan_(plan), tasks_(tasks) {}

void GroupExchange::send(int transfer, const at::Tensor& tensor) {
  std::erase_if(sent_, [](Transfer& one) {  // frees the memory of what has been sent
    if (!one.is_done()) return false;
    one.wait();
    return true;
  });
  sent_.push_back(group_.send(tensor, tasks_.transfers[transfer].to_device, transfer, name_of(transfer)));
}

void GroupExchange::expect(int transfer, const at::Tensor& into) {
  const int from = tasks_.tasks[tasks_.transfers[transfer].task].device;
  coming_.emplace(transfer, group_.receive(into, from, transfer, name_of(transfer)));
}

void GroupExchange::take(int transfer) { coming_.extract(transfer).mapped().wait(); }

void GroupExchange::end_iteration() {
  for (Transfer& transfer : sent_) transfer.wait();
  sent_.clear();
}

std::string GroupExchange::name_of(int transfer) const {
  const OperatorTask& task = tasks_.tasks[tasks_.transfers[transfer].task];
  return fmt::format("output of {}", plan_.graph.operators[task.op].name);
}

}  // namespace frostpipe
