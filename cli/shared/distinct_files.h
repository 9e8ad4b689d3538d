#pragma once

namespace CLI {
class App;
}

namespace frostpipe {

/// Throws UsageError if the command would write a file that it also reads, or write one file twice: the first content
/// would be lost. Pipes and devices may be named twice.
void require_distinct_files(const CLI::App& command);

}  // namespace frostpipe
