#pragma once
#include <string>

#include "bench/training/run_suite.h"

namespace frostpipe {

/// The suite's table for people: a row per configuration and dataset, what its columns mean, the shares of its parts
/// where the paper has them, and which runs are missing.
std::string bench_text(const BenchSuite& suite, const BenchResult& result);

}  // namespace frostpipe
