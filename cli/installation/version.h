#pragma once
#include <string>

namespace frostpipe {

/// What --version says, for whoever reports a bug: "frostpipe 0.1.0", then a line each for the commit that was built
/// ("unknown" outside a checkout, "+dirty" after one with changes), LibTorch, the other libraries, and the compiler.
std::string version_text();

/// "0.1.0, commit 0123456789ab".
std::string short_version_text();

}  // namespace frostpipe
