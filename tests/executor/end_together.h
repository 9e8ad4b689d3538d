#pragma once
#include <exception>

#include "base/error.h"
#include "executor/communication/communicator.h"

namespace frostpipe::test {

/// For destructors of objects of a test's ranks: a rank that loses a connection within an iteration discards what its
/// GPU has received, so no rank may end before the others have everything they wait for.
inline void end_together(Communicator& communicator) {
  if (std::uncaught_exceptions() > 0) return;
  try {
    communicator.control_group().barrier();
  } catch (const RuntimeFailure&) {  // another rank failed, and reports it
  }
}

}  // namespace frostpipe::test
