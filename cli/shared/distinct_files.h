#pragma once

namespace CLI {
class App;
}

namespace frostpipe {

/// Throws UsageError where a file that the command line has written is another that it names: what is read, or the
/// other result, would be lost. Pipes and devices may be named twice.
void require_distinct_files(const CLI::App& command);

}  // namespace frostpipe
