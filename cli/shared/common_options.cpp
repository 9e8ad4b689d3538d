#include "cli/shared/common_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

/// A parameter of the freeze rule and the values that it may have.
struct FreezeParameter {
  std::string_view name;
  double FreezeOptions::*value;
  double low, high;
  bool low_allowed, high_allowed;
};
constexpr FreezeParameter kFreezeParameters[] = {{"warm-up", &FreezeOptions::warm_up_fraction, 0, 1, true, true},
                                                 {"interval", &FreezeOptions::interval_fraction, 0, 1, false, true},
                                                 {"alpha", &FreezeOptions::alpha, 0, 1, false, false},
                                                 {"threshold", &FreezeOptions::threshold, 0, 1, false, true}};

/// Reads a text such as "alpha=0.5" into `options`. Returns "" or why it is not a parameter.
std::string read_freeze_parameter(const std::string& text, FreezeOptions& options) {
  const std::string::size_type equals = text.find('=');
  const auto* const found = std::ranges::find(kFreezeParameters, text.substr(0, equals), &FreezeParameter::name);
  if (equals == std::string::npos || found == std::end(kFreezeParameters))
    return "must be warm-up=X, interval=X, alpha=X or threshold=X, is " + text;
  const std::string number = text.substr(equals + 1);
  double value = 0;
  const bool is_number = CLI::detail::lexical_cast(number, value);
  if (is_number && (found->low_allowed ? value >= found->low : value > found->low) &&
      (found->high_allowed ? value <= found->high : value < found->high)) {
    options.*found->value = value;
    return "";
  }
  return fmt::format("{} must be a number {} {} and {} {}, is {}", found->name, found->low_allowed ? ">=" : ">",
                     found->low, found->high_allowed ? "<=" : "<", found->high, number);
}

}  // namespace

void add_format_option(CLI::App& command, std::string& format, const std::vector<std::string>& formats) {
  format = formats.front();
  command.add_option("--format", format, fmt::format("Form of the result on stdout: {}", fmt::join(formats, ", ")))
      ->check(CLI::IsMember(formats).description(""))
      ->type_name("FORMAT")
      ->capture_default_str();
}

CLI::Option* add_count_option(CLI::App& command, const std::string& names, int& value, const std::string& meaning) {
  return command.add_option(names, value, meaning)
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N")
      ->capture_default_str();
}

CLI::Validator finite_range(double least, double most) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value);
        return is_number && least <= value && value <= most
                   ? ""
                   : fmt::format("must be a number >= {} and <= {}, is {}", least, most, text);
      },
      "");
}

void add_record_options(CLI::App& command, SampleOptions& samples) {
  command
      .add_option("--text-column", samples.text_column,
                  "Column of a table, or field of JSON, that has the text (or messages). Default: text or sentence")
      ->type_name("NAME");
  command
      .add_option("--label-column", samples.label_column,
                  "Column of a table, or field of JSON, that has the label. Default: label")
      ->type_name("NAME");
  command
      .add_option_function<std::string>(
          "--loss-on", [&samples](const std::string& what) { samples.loss_on_all = what == "all"; },
          "Tokens of prompts and chats that have a loss: completions (and the assistant's messages), or all")
      ->check(CLI::IsMember({"completions", "all"}).description(""))
      ->type_name("WHAT")
      ->default_str("completions");
}

void add_sample_options(CLI::App& command, SampleOptions& samples) {
  add_count_option(
      command, "--max-tokens", samples.max_tokens,
      "Largest number of tokens in a sample: longer texts are cut, contexts of questions are cut into windows, and "
      "text without labels into blocks")
      ->check(CLI::Range(2, 1 << 20).description(""))
      ->default_str(fmt::format("{} for chats and prompts, else {}", kMaxTokensOfExamples, kMaxTokens));
  command
      .add_option("--window-overlap", samples.window_overlap,
                  "Number of tokens of a context that neighbouring windows share")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->type_name("N")
      ->capture_default_str();
}

CLI::Option* add_counts_option(CLI::App& command, const std::string& names, std::vector<int>& values,
                               const std::string& meaning) {
  return command.add_option(names, values, meaning)
      ->delimiter(',')
      ->check(CLI::Range(1, kLargestCount).description(""))
      ->type_name("N,N,...");
}

void add_freeze_options(CLI::App& command, FreezeOptions& options) {
  const auto check = [](const std::string& text) {
    FreezeOptions unused;
    return read_freeze_parameter(text, unused);
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--freeze-set",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) read_freeze_parameter(text, options);
          },
          fmt::format("Parameter of the freeze rule: warm-up=X, the fraction of the run before which nothing is frozen "
                      "(default: {}); interval=X, the fraction of the run between two decisions ({}); alpha=X, the "
                      "largest fraction of the active layers that one decision may freeze ({}); threshold=X, the "
                      "fraction of its largest gradient norm below which a layer has converged for the adaptive rule "
                      "({}). Give it once for each parameter",
                      options.warm_up_fraction, options.interval_fraction, options.alpha, options.threshold))
      ->allow_extra_args(false)  // PLAN may follow
      ->check(CLI::Validator(check, ""))
      ->type_name("NAME=X");
}

std::string check_bytes(const std::string& text) {
  try {
    return parse_bytes(text, "size") >= 0 ? "" : "must be >= 0, is " + text;
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

Hardware hardware_named(const std::string& name_or_file) {
  try {
    return find_hardware(name_or_file);
  } catch (const InvalidInput& error) {
    if (std::filesystem::exists(name_or_file)) throw;  // the file is there, and its content is wrong
    throw UsageError(fmt::format("--{}", error.what()));
  }
}

std::string check_duration(const std::string& text) {
  try {
    parse_duration(text, "");
    return "";
  } catch (const InvalidInput&) {
    return "must be a time such as 90s, 12min or 1.5h, is " + text;
  }
}

CLI::Option* add_dtype_option(CLI::App& command, const std::string& names, std::function<void(DType)> set,
                              const std::string& meaning) {
  const std::vector<std::string> words{std::string(to_string(DType::kFloat32)),
                                       std::string(to_string(DType::kBFloat16))};
  const auto parse = [set = std::move(set)](const std::string& word) { set(find_dtype(word).value()); };
  return command.add_option_function<std::string>(names, parse, meaning)->check(CLI::IsMember(words).description(""));
}

void add_seed_option(CLI::App& command, std::uint64_t& seed) {
  command.add_option("--seed", seed, "Seed of the order of the data and of every random number")
      ->check(CLI::Validator(
          [](const std::string& text) { return text.starts_with('-') ? "must be >= 0, is " + text : std::string(); },
          ""))
      ->type_name("N")
      ->capture_default_str();
}

void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "Device to compute on: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}).description(""))
      ->type_name("DEVICE")
      ->capture_default_str();
}

void add_interface_option(CLI::App& command, std::string& interface) {
  command
      .add_option(
          "--interface", interface,
          "Network interface, or address of this host, for the messages of ranks that another launcher has started. "
          "Default: GLOO_SOCKET_IFNAME, else the one on the way to rank 0's host")
      ->type_name("NAME");
}

}  // namespace frostpipe
