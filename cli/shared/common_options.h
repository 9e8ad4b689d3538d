#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/execute.h"
#include "plan/freeze.h"
#include "plan/plan.h"
#include "profiles/dtype.h"
#include "profiles/hardware.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace frostpipe {

/// Limit for counts given on the command line: far beyond any use, and no product of two overflows.
inline constexpr int kLargestCount = 1'000'000;

/// --format, one of `formats`; the first is the default.
void add_format_option(CLI::App& command, std::string& format,
                       const std::vector<std::string>& formats = {"text", "json"});

/// An option that takes a whole number in [1, kLargestCount].
CLI::Option* add_count_option(CLI::App& command, const std::string& names, int& value, const std::string& meaning);
/// --text-column, --label-column, --loss-on.
void add_record_options(CLI::App& command, SampleOptions& samples);
/// How samples are made of data: `profile`, `train` and `evaluate` must agree.
void add_sample_options(CLI::App& command, SampleOptions& samples);

/// The same where a plan knows how: what is given must be what the plan was made for.
struct GivenSampleOptions {
  std::optional<int> max_tokens, window_overlap;
};
void add_sample_options(CLI::App& command, GivenSampleOptions& given);

/// For options that take a number: between both, and neither NaN nor infinite, which CLI::Range lets pass.
CLI::Validator finite_range(double least, double most);

/// An option that takes a comma-separated list of such numbers.
CLI::Option* add_counts_option(CLI::App& command, const std::string& names, std::vector<int>& values,
                               const std::string& meaning);

/// --freeze-warm-up, --freeze-interval, --freeze-alpha, --freeze-threshold.
void add_freeze_options(CLI::App& command, FreezeOptions& options);

/// "" if the text is a size like 384MiB, else why not.
std::string check_bytes(const std::string& text);

/// A device that an option --hardware names, as find_hardware. Throws UsageError for what is neither a known name nor a
/// file.
Hardware hardware_named(const std::string& name_or_file);

/// "" if the text is a time like 90min, else why not.
std::string check_duration(const std::string& text);

/// An option that takes float32 or bfloat16 and hands it to `set`.
CLI::Option* add_dtype_option(CLI::App& command, const std::string& names, std::function<void(DType)> set,
                              const std::string& meaning);

/// --cache-memory, --cache-disk, --cache-dtype.
void add_cache_options(CLI::App& command, CacheLimits& limits);

/// --seed
void add_seed_option(CLI::App& command, std::uint64_t& seed);

/// --device
void add_device_option(CLI::App& command, std::string& device);
/// `--interface`, for commands that ranks on several hosts carry out.
void add_interface_option(CLI::App& command, std::string& interface);

}  // namespace frostpipe
