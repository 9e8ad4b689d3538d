#pragma once

namespace frostpipe {

/// Flushes C's output streams and ends the process; call it at the end of main. Static objects are not destroyed, since
/// LibTorch's take 70 ms to free memory that the system reclaims anyway. Under a sanitizer the process exits normally,
/// so that leaks are found.
[[noreturn]] void end_process(int exit_code);

}  // namespace frostpipe
