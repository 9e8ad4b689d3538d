#pragma once

namespace frostpipe {

/// For the end of main: ends the process once what has been printed is written. Static objects are not destroyed, since
/// LibTorch's take 70 ms to give back memory that the system takes anyway; but where a sanitizer looks for what is
/// left, as usual.
[[noreturn]] void end_process(int exit_code);

}  // namespace frostpipe
