#pragma once
#include <map>
#include <vector>

#include "executor/communication/group.h"
#include "operators/executor/tensor_exchange.h"
#include "operators/plan/operator_tasks.h"

namespace frostpipe {

/// Sends transfers as messages of a group in which rank d is device d.
class GroupExchange final : public TensorExchange {
 public:
  /// The arguments must outlive this object.
  GroupExchange(Group& group, const OperatorPlan& plan, const OperatorTasks& tasks);
  void send(int transfer, const at::Tensor& tensor) override;
  void expect(int transfer, const at::Tensor& into) override;
  void take(int transfer) override;
  void end_iteration() override;

 private:
  std::string name_of(int transfer) const;

  Group& group_;
  const OperatorPlan& plan_;
  const OperatorTasks& tasks_;
  std::vector<Transfer> sent_;
  std::map<int, Transfer> coming_;
};

}  // namespace frostpipe
