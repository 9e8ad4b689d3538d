#pragma once
#include <string>

#include "base/error.h"

namespace frostpipe {

/// Throws the error of a function that needs LibTorch, and so the program `executor`.
[[noreturn]] inline void left_out(const std::string& executor, const std::string& purpose) {
  throw RuntimeFailure("the LibTorch executor, " + executor +
                       ", is not beside this program; build the preset 'default' (scripts/setup) to " + purpose);
}

}  // namespace frostpipe
