#include <fmt/format.h>

#include <algorithm>

#include "plan/plan.h"

namespace frostpipe {

double fraction_at(const std::vector<CacheFound>& found, int layer) {
  const auto at = std::find_if(found.begin(), found.end(), [&](const CacheFound& one) { return one.layer == layer; });
  return at == found.end() ? 0 : at->fraction;
}

double computed_fraction(const CacheUse& cache, int layer, int reach) {
  double computed = 1;
  for (const CacheFound& one : cache.found) {
    if (cache.on && one.layer > layer && one.layer <= reach) computed -= one.fraction;
  }
  return std::max(0.0, computed);
}

std::string to_string(const CacheUse& cache, int boundary) {
  if (!cache.on) return "-";
  if (cache.found.empty()) return "fill";
  double found = 0;
  for (const CacheFound& one : cache.found) found += one.fraction;
  const double hits = fraction_at(cache.found, boundary), others = found - hits;
  if (hits > 1 - 1e-9) return "hit";
  std::string text = hits > 0 ? fmt::format("{:.0f} % hits", 100 * hits) : "";
  if (others > 0) text += fmt::format("{}{:.0f} % from before", text.empty() ? "" : ", ", 100 * others);
  return text.empty() ? "fill" : text;
}

}  // namespace frostpipe
