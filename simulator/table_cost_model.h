#pragma once
#include <vector>

#include "simulator/cost_model.h"

namespace frostpipe {

/// The times of a stage on one replica, as a caller gives them, the same for every micro-batch. They serve to simulate
/// runs from published measurements.
struct StageTimes {
  Nanoseconds forward_ns = 0, backward_ns = 0;  // backward_ns covers I and W; W alone costs nothing
  TransferCost send_forward, send_backward;
  Nanoseconds update_ns = 0;
};

class TableCostModel final : public CostModel {
 public:
  /// Takes times[stage][replica] and reduce_gradient[stage], a collective that starts when all its ranks have arrived,
  /// and takes no time with fewer than two ranks.
  TableCostModel(std::vector<std::vector<StageTimes>> times, std::vector<Segment> reduce_gradient)
      : times_(std::move(times)), reduce_gradient_(std::move(reduce_gradient)) {}
  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override;
  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const override;
  TransferCost transfer(const Action& send, int replica) const override;

 private:
  std::vector<std::vector<StageTimes>> times_;
  std::vector<Segment> reduce_gradient_;
};

}  // namespace frostpipe
