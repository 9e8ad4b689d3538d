#include "base/time_left.h"

#include <fmt/format.h>

namespace frostpipe {

std::string time_left(Nanoseconds elapsed, double share) {
  if (share <= 0 || share >= 1) return "";
  const double left = static_cast<double>(elapsed) * (1 - share) / share;
  return fmt::format("; about {} left", format_duration(static_cast<Nanoseconds>(left)));
}

}  // namespace frostpipe
