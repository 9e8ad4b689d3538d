#pragma once
#include <cstdint>
#include <functional>
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

/// The limit for counts given on the command line. It is far beyond any use, and no product of two counts overflows.
inline constexpr int kLargestCount = 1'000'000;

/// Adds --format, one of `formats`; the first is the default.
void add_format_option(CLI::App& command, std::string& format,
                       const std::vector<std::string>& formats = {"text", "json"});

/// Adds an option that takes a whole number in [1, kLargestCount].
CLI::Option* add_count_option(CLI::App& command, const std::string& names, int& value, const std::string& meaning);
/// Adds --text-column, --label-column and --loss-on.
void add_record_options(CLI::App& command, SampleOptions& samples);
/// Adds --max-tokens and --window-overlap, which say how samples are made of texts.
void add_sample_options(CLI::App& command, SampleOptions& samples);

/// Returns a check that a number is in [least, most]. It refuses NaN and infinity, which CLI::Range accepts.
CLI::Validator finite_range(double least, double most);

/// Adds an option that takes a comma-separated list of whole numbers in [1, kLargestCount].
CLI::Option* add_counts_option(CLI::App& command, const std::string& names, std::vector<int>& values,
                               const std::string& meaning);

/// Adds --freeze-set, which sets the parameters of the freeze rule one by one.
void add_freeze_options(CLI::App& command, FreezeOptions& options);

/// Returns "" if the text is a size like 384MiB, else why not.
std::string check_bytes(const std::string& text);

/// Finds the device that an option --hardware names. Throws UsageError for a text that is neither a known name nor a
/// file.
Hardware hardware_named(const std::string& name_or_file);

/// Returns "" if the text is a time like 90min, else why not.
std::string check_duration(const std::string& text);

/// Adds an option that takes float32 or bfloat16 and hands it to `set`.
CLI::Option* add_dtype_option(CLI::App& command, const std::string& names, std::function<void(DType)> set,
                              const std::string& meaning);

/// Adds --seed.
void add_seed_option(CLI::App& command, std::uint64_t& seed);

/// Adds --device.
void add_device_option(CLI::App& command, std::string& device);
/// Adds --interface, for commands that run on several hosts.
void add_interface_option(CLI::App& command, std::string& interface);

}  // namespace frostpipe
