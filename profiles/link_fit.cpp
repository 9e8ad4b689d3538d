#include "profiles/link_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/statistics.h"

namespace frostpipe {
namespace {

/// Returns the quantile at `share`; if it falls between two values, the lower one.
double at_share(std::vector<double> values, double share) { return quantile(std::move(values), share, Between::lower); }

/// Returns the median of the nanoseconds per byte between any two transfers but the smallest.
double slope_of(const LinkRound& round) {
  std::vector<double> slopes;
  for (std::size_t i = 1; i < round.size(); ++i) {
    for (std::size_t j = i + 1; j < round.size(); ++j)
      slopes.push_back(static_cast<double>(round[j].time_ns - round[i].time_ns) /
                       static_cast<double>(round[j].bytes - round[i].bytes));
  }
  return at_share(std::move(slopes), 0.5);
}

[[noreturn]] void fail(std::string_view what, const std::string& found) {
  throw RuntimeFailure(
      fmt::format("{}: the measured times make no sense: {}. The machine may be too busy to be measured; try again "
                  "when it is quiet",
                  what, found));
}

double in_gigabytes(double bytes_per_second) { return bytes_per_second / 1e9; }

}  // namespace

Link fit_link(const std::vector<LinkRound>& rounds, std::string_view what) {
  FROSTPIPE_CHECK(!rounds.empty(), "a link is measured");
  std::vector<double> latencies, slopes;
  for (const LinkRound& round : rounds) {
    FROSTPIPE_CHECK(round.size() >= 3, "a slope needs two sizes beside the smallest");
    latencies.push_back(static_cast<double>(round.front().time_ns));
    slopes.push_back(slope_of(round));
  }
  const double slope = at_share(slopes, 0.5);
  const LinkRound& example = rounds.front();
  if (slope <= 0)
    fail(what, fmt::format("{} bytes take no longer than {} bytes", example.back().bytes, example[1].bytes));
  if (1e9 / slope > kMaxBytesPerSecond)
    fail(what, fmt::format("{:.3g} GB/s, more than any link can do ({:g})", in_gigabytes(1e9 / slope),
                           in_gigabytes(kMaxBytesPerSecond)));
  const auto bandwidth = [](double nanoseconds_per_byte) {
    return static_cast<std::int64_t>(std::llround(std::min(1e9 / nanoseconds_per_byte, kMaxBytesPerSecond)));
  };
  // A slope <= 0 (larger messages were faster) gives no upper bound on the bandwidth.
  const double fast = at_share(slopes, 0.25);
  return {.latency_ns = std::max<Nanoseconds>(0, std::llround(at_share(std::move(latencies), 0.5))),
          .bandwidth_bytes_per_second = bandwidth(slope),
          .measured_bandwidth =
              BandwidthSpread{bandwidth(at_share(slopes, 0.75)),
                              fast > 0 ? bandwidth(fast) : static_cast<std::int64_t>(kMaxBytesPerSecond)}};
}

Link link_through(const TransferTime& smaller, const TransferTime& larger) {
  FROSTPIPE_CHECK(smaller.bytes < larger.bytes, "a slope needs two sizes");
  const double slope =
      static_cast<double>(larger.time_ns - smaller.time_ns) / static_cast<double>(larger.bytes - smaller.bytes);
  if (slope * kMaxBytesPerSecond < 1e9)
    return {.latency_ns = std::max<Nanoseconds>(0, larger.time_ns), .bandwidth_bytes_per_second = 0};
  const double latency = static_cast<double>(smaller.time_ns) - slope * static_cast<double>(smaller.bytes);
  return {.latency_ns = std::max<Nanoseconds>(0, std::llround(latency)),
          .bandwidth_bytes_per_second = std::max<std::int64_t>(1, std::llround(1e9 / slope))};
}

bool is_unsteady(const Link& link) {
  return link.measured_bandwidth &&
         link.measured_bandwidth->high_bytes_per_second > 2 * link.measured_bandwidth->low_bytes_per_second;
}

std::string to_text(const Link& link) {
  const auto gigabytes = [](std::int64_t bytes_per_second) {
    return in_gigabytes(static_cast<double>(bytes_per_second));
  };
  std::string text = fmt::format("latency {}, bandwidth ", format_duration(link.latency_ns));
  text += link.bandwidth_bytes_per_second > 0 ? fmt::format("{:.2f} GB/s", gigabytes(link.bandwidth_bytes_per_second))
                                              : "unlimited";
  if (const auto& spread = link.measured_bandwidth)
    text += fmt::format(" (half of the measurements: {:.2f} to {:.2f})", gigabytes(spread->low_bytes_per_second),
                        gigabytes(spread->high_bytes_per_second));
  return text;
}

}  // namespace frostpipe
