#pragma once
#include <memory>

#include "executor/job/launch.h"

namespace frostpipe {

/// A store of LibTorch's on this machine, at a free port.
std::unique_ptr<Rendezvous> open_rendezvous_store();

}  // namespace frostpipe
