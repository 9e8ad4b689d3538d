#include "base/process/end_process.h"

#include <cstdio>
#include <cstdlib>

namespace frostpipe {

void end_process(int exit_code) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::exit(exit_code);
#else
  std::fflush(nullptr);
  std::_Exit(exit_code);
#endif
}

}  // namespace frostpipe
