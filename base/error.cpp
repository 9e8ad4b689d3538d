#include "base/error.h"

#include <fmt/format.h>

#include "base/error_values.h"

namespace frostpipe {
namespace {

constexpr std::size_t kLongestMessage = 4000, kLongestPart = 1000;

}  // namespace

InvalidInput::InvalidInput(std::string_view message) : std::runtime_error(shortened(message, kLongestMessage)) {}

InvalidInput::InvalidInput(std::string_view place, std::string_view rule, std::string_view value)
    : std::runtime_error(fmt::format("{}: {}, is {}", shortened(place, kLongestPart), shortened(rule, kLongestPart),
                                     shortened(value, kLongestPart))) {}

void check_failed(const char* condition, const char* why, const char* file, int line) {
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold, though {}", file, line, condition, why));
}

}  // namespace frostpipe
