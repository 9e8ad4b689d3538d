#pragma once
#include <string>

#include "bench/training/run_suite.h"

namespace frostpipe {

/// Returns the suite's table as text: a row per configuration and dataset, the meaning of the columns, the speedups of
/// the components that the paper has too, and the missing runs.
std::string bench_text(const BenchSuite& suite, const BenchResult& result);

}  // namespace frostpipe
