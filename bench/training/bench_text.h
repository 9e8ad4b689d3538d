#pragma once
#include <string>

#include "bench/training/run_suite.h"

namespace frostpipe {

/// The suite's table as text: a row per configuration and dataset, the meaning of the columns, the shares of the parts
/// for which the paper has them, and the missing runs.
std::string bench_text(const BenchSuite& suite, const BenchResult& result);

}  // namespace frostpipe
