#include "serving/planner/prepartition.h"

#include <limits>
#include <numeric>

#include "base/error.h"

namespace frostpipe {
namespace {

constexpr Bytes kNever = std::numeric_limits<Bytes>::max();

/// Returns the time of one request on all earlier layers, [type][layer].
std::vector<std::vector<double>> times_before(const ServingProfile& layers) {
  std::vector<std::vector<double>> result;
  for (const auto& times : layers.times) {
    if (times.share != 1) continue;
    auto& before = result.emplace_back(1, 0.0);
    for (const auto& row : times.forward_ns) before.push_back(before.back() + static_cast<double>(row.front()));
  }
  return result;
}

bool is_within(const std::vector<std::vector<double>>& before, int begin, int end, double least, double most) {
  for (const auto& times : before) {
    const double part = times[end] - times[begin], whole = times.back();
    if (part < least * whole || part > most * whole) return false;
  }
  return true;
}

}  // namespace

std::optional<Prepartition> prepartition_within(const ServingProfile& layers, int num_blocks,
                                                const BlockBounds& bounds) {
  const int num_layers = frostpipe::num_blocks(layers);
  const auto before = times_before(layers);
  const double least = bounds.least_share / num_blocks, most = bounds.max_share / num_blocks;
  std::vector<Bytes> best(num_layers + 1, kNever);  // [j]: fewest bytes if the first blocks end before layer j
  best[0] = 0;
  std::vector<std::vector<int>> begin_of(num_blocks, std::vector<int>(num_layers + 1, 0));
  for (int block = 0; block < num_blocks; ++block) {
    std::vector<Bytes> next(num_layers + 1, kNever);
    for (int end = block + 1; end <= num_layers; ++end) {
      const Bytes cut = end == num_layers ? 0 : layers.cut_bytes[end - 1];
      for (int begin = block; begin < end; ++begin) {
        if (best[begin] == kNever || best[begin] + cut >= next[end]) continue;
        if (!is_within(before, begin, end, least, most)) continue;
        next[end] = best[begin] + cut;
        begin_of[block][end] = begin;
      }
    }
    best = std::move(next);
  }
  if (best[num_layers] == kNever) return std::nullopt;
  Prepartition result{.ends = std::vector<int>(num_blocks), .bounds = bounds, .cut_bytes = best[num_layers]};
  int end = num_layers;
  for (int block = num_blocks - 1; block >= 0; --block) {
    result.ends[block] = end;
    end = begin_of[block][end];
  }
  return result;
}

Prepartition prepartition(const ServingProfile& layers, int num_blocks) {
  FROSTPIPE_CHECK(num_blocks >= 1, "a model has blocks");
  const int num_layers = frostpipe::num_blocks(layers);
  if (num_layers <= num_blocks) {
    Prepartition each{.ends = std::vector<int>(num_layers), .bounds = {0, static_cast<double>(num_blocks)}};
    std::iota(each.ends.begin(), each.ends.end(), 1);
    each.cut_bytes = std::accumulate(layers.cut_bytes.begin(), layers.cut_bytes.end(), Bytes{0});
    return each;
  }
  constexpr BlockBounds kBounds[] = {{0.7, 1.3}, {0.5, 1.5}, {0.5, 2}, {0.5, 2.5},
                                     {0.5, 3},   {0.5, 3.5}, {0.5, 4}, {0.4, 4}};
  for (const BlockBounds& bounds : kBounds)
    if (auto found = prepartition_within(layers, num_blocks, bounds)) return *found;
  const auto any = prepartition_within(layers, num_blocks, {0, static_cast<double>(num_blocks)});
  FROSTPIPE_CHECK(any, "more layers than blocks can be cut into blocks");
  return *any;
}

}  // namespace frostpipe
