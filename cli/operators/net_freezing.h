#pragma once
#include <string>

#include "executor/execute.h"

// The option --freeze of `nets train`.

namespace frostpipe {

/// Parses "plan" or "fixed:N,N,...", numbers of layers. Throws UsageError for other rules, which decide during the run:
/// nets freeze after known epochs only.
FreezePolicy net_freeze_policy(const std::string& text);

/// Says which numbers of layers fixed:N,N,... never freezes in a run of `num_epochs` >= 1, since it ends before; empty
/// if there are none.
std::string freezes_that_never_happen(const std::string& text, int num_epochs);

}  // namespace frostpipe
