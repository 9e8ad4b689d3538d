#pragma once
#include <string_view>

namespace CLI {
class App;
}

namespace frostpipe {

/// Throws UsageError where the command line has an option that is not among `names`, which stand with blanks between
/// them. `whose`: "train of a plan of operators".
void require_only(std::string_view names, const CLI::App& command, std::string_view whose);

}  // namespace frostpipe
