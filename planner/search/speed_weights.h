#pragma once
#include <vector>

#include "planner/search/phase_work.h"

namespace frostpipe {

/// Returns weights of the pipeline ranks for bound_of_any_partition, nearly proportional to the speeds of their
/// devices. The largest is 1; the result is empty if the work of all ranks is of one ReplicaKind.
std::vector<double> weights_by_speed(const PhaseWork& work);

}  // namespace frostpipe
