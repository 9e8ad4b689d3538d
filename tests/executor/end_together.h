#pragma once
#include <exception>

#include "base/error.h"
#include "executor/communication/communicator.h"

namespace frostpipe::test {

/// For the destructor of what a test's ranks share: who loses a connection within an iteration does not trust what a
/// GPU has received in it, so that nobody ends before the others have all that they wait for.
inline void end_together(Communicator& communicator) {
  if (std::uncaught_exceptions() > 0) return;
  try {
    communicator.control_group().barrier();
  } catch (const RuntimeFailure&) {  // of another rank, which says so
  }
}

}  // namespace frostpipe::test
