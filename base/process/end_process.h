#pragma once

namespace frostpipe {

/// Flushes standard output and ends the process, at the end of main. Static objects are not destroyed, since LibTorch's
/// take 70 ms to free memory that the system reclaims anyway. Under a sanitizer the process exits normally, so that
/// leaks are found.
[[noreturn]] void end_process(int exit_code);

}  // namespace frostpipe
