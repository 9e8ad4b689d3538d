#pragma once
// Implementation header: include it from .cpp files only.
#include <string>
#include <vector>

#include "plan/action.h"

namespace frostpipe {

/// Returns the fields of PyTorch's CSV. An overlapped pair is one field, "(0F7;7B0)OVERLAP_F_B".
std::vector<std::string> schedule_fields(const std::vector<Action>& actions);

}  // namespace frostpipe
