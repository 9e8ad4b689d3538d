#pragma once
#include "executor/communication/communicator.h"
#include "executor/runtime/schedule_runner.h"

namespace frostpipe::test {

/// The loss, which is equal on all training ranks; called by all ranks.
inline double agreed_loss(Communicator& communicator, const IterationResult& result) {
  const std::vector<double> sums = communicator.sum({result.loss, result.block_square_sums.empty() ? 0.0 : 1.0});
  return sums[0] / sums[1];
}

}  // namespace frostpipe::test
