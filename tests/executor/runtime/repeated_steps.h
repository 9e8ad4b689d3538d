#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "plan/plan.h"
#include "tests/executor/runtime/job.h"

namespace frostpipe::test {

/// The results by which runs with and without CUDA graphs are compared.
struct Steps {
  std::vector<double> losses;
  std::map<int, at::Tensor> weights;  // at the end, by layer of this rank, on the host
};

struct RepeatedSteps {
  Optimizer optimizer = Optimizer::kSgd;
  DType dtype = DType::kFloat64;
  double learning_rate = 0.1;  // of the first step; up to three times as large in others
};

/// Eight steps with clipping on mini-batches a b a b c b a c. a and b have the same lengths; c has others if samples
/// differ in length.
Steps repeated_steps(Job& job, const Phase& phase, bool cuda_graphs, const RepeatedSteps& how);

}  // namespace frostpipe::test
