#pragma once
#include "plan/plan.h"
#include "tests/executor/runtime/job.h"

namespace frostpipe::test {

/// One iteration of the phase, on all of its ranks. Oracle: gradients, their squares by block, and loss of one process
/// without stages (reference_model.h), within the design's bounds: per tensor ||g - g0|| <= 1e-5 ||g0|| + 1e-6 ||G0||
/// in fp32, 1e-11 ||g0|| + 1e-13 ||G0|| in fp64, G0 = all gradients together.
void check_gradients(Job& job, const Phase& phase, DType dtype, int num_samples);

/// Three iterations of the phase with their updates. Oracle: each rank has the same live bytes after the second and the
/// third as after the first, which leaves only lasting memory. If iterations overlap, the third drains the pipeline,
/// and three more follow: the live bytes after the sixth are those after the third, and after the others, which leave
/// the forwards of the next iteration, those after the first.
void check_nothing_is_left(Job& job, const Phase& phase);

}  // namespace frostpipe::test
