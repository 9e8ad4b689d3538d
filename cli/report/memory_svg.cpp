#include "cli/report/memory_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/svg.h"

namespace frostpipe {
namespace {

constexpr double kPlotLeft = 132, kPlotWidth = 900, kPlotTop = 30, kCurveHeight = 64, kCurveGap = 10, kAxisRoom = 34,
                 kMebibyte = 1 << 20;

constexpr const char* kMemoryStyle = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #333; }
.title { font-weight: 600; font-size: 14px; }
.tick { text-anchor: middle; font-size: 11px; }
.plot { fill: #f4f4f4; }
.live { fill: #8ab6e8; stroke: #38699e; }
.limit { stroke: #c0392b; stroke-dasharray: 5 3; }
.grid { stroke: #ddd; }
</style>
)";

struct MemoryScale {
  double per_ns = 0, per_byte = 0;
};

MemoryScale scale_of(const std::vector<MemoryCurve>& curves) {
  Nanoseconds longest = 1;
  Bytes most = 1;
  for (const MemoryCurve& curve : curves) {
    longest = std::max(longest, curve.iteration_ns);
    most = std::max(most, curve.limit_bytes.value_or(0));
    if (!curve.changes.empty()) most = std::max(most, largest(curve.changes).bytes);
  }
  return {.per_ns = kPlotWidth / static_cast<double>(longest),
          .per_byte = kCurveHeight / (1.05 * static_cast<double>(most))};
}

std::string curve_path(const MemoryCurve& curve, double bottom, const MemoryScale& scale) {
  const auto x = [&](Nanoseconds at) { return coordinate(kPlotLeft + static_cast<double>(at) * scale.per_ns); };
  const auto y = [&](Bytes bytes) { return coordinate(bottom - static_cast<double>(bytes) * scale.per_byte); };
  const Bytes before = curve.changes.back().bytes;  // an iteration begins with what the one before has left
  std::string path = fmt::format("M{} {}V{}", x(0), coordinate(bottom), y(before));
  for (const MemoryChange& change : curve.changes) path += fmt::format("H{}V{}", x(change.at_ns), y(change.bytes));
  return path + fmt::format("H{}V{}Z", x(curve.iteration_ns), coordinate(bottom));
}

}  // namespace

std::string memory_svg(const std::vector<MemoryCurve>& curves) {
  const MemoryScale scale = scale_of(curves);
  const double bottom = kPlotTop + static_cast<double>(curves.size()) * (kCurveHeight + kCurveGap),
               height = bottom + kAxisRoom, width = kPlotLeft + kPlotWidth + 20;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n{2}",
      coordinate(width), coordinate(height), kMemoryStyle);
  svg +=
      fmt::format("<text class=\"title\" x=\"{}\" y=\"18\">Memory over one iteration, predicted</text>\n", kPlotLeft);
  const std::vector<double> ticks = nice_ticks(0, kPlotWidth / scale.per_ns / 1e6, 10);
  for (const double tick : ticks) {
    const std::string x = coordinate(kPlotLeft + 1e6 * tick * scale.per_ns);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/><text class=\"tick\" x=\"{0}\" "
        "y=\"{3}\">{4} ms</text>\n",
        x, kPlotTop, coordinate(bottom), coordinate(bottom + 16), tick_label(tick, ticks));
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const MemoryCurve& curve = curves[i];
    const double low = kPlotTop + static_cast<double>(i) * (kCurveHeight + kCurveGap) + kCurveHeight;
    svg += fmt::format("<text x=\"0\" y=\"{}\">step {}, rank {}</text>", coordinate(low - kCurveHeight + 14),
                       curve.from_step, curve.rank);
    svg += fmt::format("<rect class=\"plot\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>", kPlotLeft,
                       coordinate(low - kCurveHeight), static_cast<double>(curve.iteration_ns) * scale.per_ns,
                       kCurveHeight);
    if (!curve.changes.empty()) {
      const MemoryChange peak = largest(curve.changes);
      svg += fmt::format(
          "<text x=\"0\" y=\"{}\">{:.1f} MiB</text><path class=\"live\" d=\"{}\"><title>largest in {}</title></path>",
          coordinate(low - kCurveHeight + 32), static_cast<double>(peak.bytes) / kMebibyte,
          curve_path(curve, low, scale), to_string(peak.action));
    }
    if (curve.limit_bytes) {
      const std::string y = coordinate(low - static_cast<double>(*curve.limit_bytes) * scale.per_byte);
      svg += fmt::format("<line class=\"limit\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>", kPlotLeft,
                         kPlotLeft + kPlotWidth, y);
    }
    svg += "\n";
  }
  return svg + "</svg>\n";
}

std::string memory_csv(const std::vector<MemoryCurve>& curves) {
  std::string csv = "from_step,rank,at_ns,bytes,action\n";
  for (const MemoryCurve& curve : curves)
    for (const MemoryChange& change : curve.changes)
      csv += fmt::format("{},{},{},{},{}{}\n", curve.from_step, curve.rank, change.at_ns, change.bytes,
                         to_string(change.action), change.ended ? " ended" : "");
  return csv;
}

std::vector<std::string> limit_violations(const std::vector<MemoryCurve>& curves) {
  std::vector<std::string> sentences;
  for (const MemoryCurve& curve : curves) {
    if (!curve.limit_bytes || curve.changes.empty()) continue;
    const MemoryChange peak = largest(curve.changes);
    if (peak.bytes <= *curve.limit_bytes) continue;
    sentences.push_back(fmt::format("from step {}, rank {} needs {} in {}, {} into the iteration: {} more than its {}",
                                    curve.from_step, curve.rank, format_bytes(peak.bytes), to_string(peak.action),
                                    format_duration(peak.at_ns), format_bytes(peak.bytes - *curve.limit_bytes),
                                    format_bytes(*curve.limit_bytes)));
  }
  return sentences;
}

}  // namespace frostpipe
