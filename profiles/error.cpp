#include "profiles/error.h"

#include <fmt/format.h>

namespace frostpipe {

InvalidInput::InvalidInput(std::string_view place, std::string_view rule, std::string_view value)
    : std::runtime_error(fmt::format("{}: {}, is {}", place, rule, value)) {}

void check_failed(const char* condition, const char* why, const char* file, int line) {
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold, though {}", file, line, condition, why));
}

}  // namespace frostpipe
