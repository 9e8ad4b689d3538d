#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// Returns a number of micro-batches with which the phase has the same peaks_in_flight (memory.h) as with all of them:
/// at most 4 p, but all of them for schedules that run all forwards first, for uneven rounds of several stages per
/// rank, and with vacant coordinates.
int micro_batches_in_flight(const Phase& phase);

}  // namespace frostpipe
