#pragma once
#include <string>

namespace frostpipe {

/// Returns the text of --version, for bug reports: "frostpipe 0.1.0", then a line each for the commit that was built
/// ("unknown" outside a checkout, "+dirty" after one with changes), LibTorch, the other libraries, and the compiler.
std::string version_text();

/// Returns "0.1.0, commit 0123456789ab".
std::string short_version_text();

}  // namespace frostpipe
