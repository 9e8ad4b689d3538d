#pragma once
#include "cli/program/program.h"

namespace frostpipe {

/// `frostpipe bench`: the suites of published runs, and suites that train.
Command add_bench_command(CLI::App& app);

}  // namespace frostpipe
