#include "cli/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/report/svg.h"

namespace frostpipe {
namespace {

constexpr double kWidth = 520, kHeight = 250;
constexpr double kLeft = 50, kRight = 14, kTop = 34, kBottom = 40;

struct Axis {
  double low = 0, high = 1;
  double from = 0, to = 1;  // pixels
  double pixel(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

/// Returns an axis that ends on ticks, so that its last line has a label.
Axis y_axis(const Chart& chart, Extent extent) {
  const double room = extent.high > extent.low ? (extent.high - extent.low) * 0.03 : 0.5;
  double low = chart.y_low.value_or(extent.low - room);
  double high = chart.y_high.value_or(extent.high + room);
  if (!(high > low)) high = low + 1;
  const std::vector<double> ticks = nice_ticks(low, high, 5);
  if (ticks.size() > 1) {
    const double distance = ticks[1] - ticks[0];
    if (!chart.y_low) low = std::floor(low / distance + 1e-9) * distance;
    if (!chart.y_high) high = std::ceil(high / distance - 1e-9) * distance;
  }
  return {.low = low, .high = high, .from = kHeight - kBottom, .to = kTop};
}

std::string path_of(const ChartSeries& series, const Axis& x, const Axis& y) {
  std::string path;
  double previous_y = 0;
  for (const ChartPoint& point : series.points) {
    const std::string px = coordinate(x.pixel(point.x));
    const double clamped = std::clamp(point.y, y.low, y.high);
    const std::string py = coordinate(y.pixel(clamped));
    if (path.empty()) {
      path = fmt::format("M{} {}", px, py);
    } else {
      if (series.shape == ChartSeries::Shape::steps && clamped != previous_y) path += fmt::format("H{}", px);
      path += fmt::format("L{} {}", px, py);
    }
    previous_y = clamped;
  }
  return path;
}

std::string series_svg(const ChartSeries& series, const Axis& x, const Axis& y) {
  const bool faint = series.shape == ChartSeries::Shape::faint_line;
  std::string svg = fmt::format("<g class=\"series {}{}\"><title>{}</title><path d=\"{}\"/>", series.css_class,
                                faint ? " faint" : "", escape_html(series.name), path_of(series, x, y));
  if (series.shape == ChartSeries::Shape::line_with_dots) {
    for (const ChartPoint& point : series.points) {
      svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\"><title>{}: {:.4g}</title></circle>",
                         coordinate(x.pixel(point.x)), coordinate(y.pixel(point.y)), escape_html(series.name), point.y);
    }
  }
  return svg + "</g>\n";
}

std::string axes_svg(const Chart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  const std::vector<double> y_ticks = nice_ticks(y.low, y.high, 5);
  for (const double tick : y_ticks) {
    const std::string py = coordinate(y.pixel(tick));
    svg +=
        fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", kLeft, kWidth - kRight, py, py);
    svg += fmt::format("<text class=\"tick end\" x=\"{}\" y=\"{}\">{}</text>", kLeft - 6,
                       coordinate(y.pixel(tick) + 3.5), tick_label(tick, y_ticks));
  }
  const std::vector<double> x_ticks = nice_ticks(x.low, x.high, 6);
  for (const double tick : x_ticks) {
    svg += fmt::format("<text class=\"tick middle\" x=\"{}\" y=\"{}\">{}</text>", coordinate(x.pixel(tick)),
                       kHeight - kBottom + 15, tick_label(tick, x_ticks));
  }
  svg += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", kLeft, kWidth - kRight,
                     kHeight - kBottom, kHeight - kBottom);
  svg += fmt::format("<text class=\"tick middle\" x=\"{}\" y=\"{}\">{}</text>", (kLeft + kWidth - kRight) / 2,
                     kHeight - 8, escape_html(chart.x_label));
  svg += fmt::format("<text class=\"chart-title\" x=\"0\" y=\"14\">{} <tspan class=\"tick\">{}</tspan></text>\n",
                     escape_html(chart.title), escape_html(chart.y_label));
  return svg;
}

}  // namespace

std::string to_svg(const Chart& given) {
  Chart chart = given;
  Extent x_extent, y_extent;
  for (ChartSeries& series : chart.series) {
    std::erase_if(series.points, [](const ChartPoint& p) { return !std::isfinite(p.x) || !std::isfinite(p.y); });
    for (const ChartPoint& point : series.points) {
      x_extent.add(point.x);
      y_extent.add(point.y);
    }
  }
  if (x_extent.empty()) return "";
  const double x_low = std::min(0.0, x_extent.low);
  const Axis x{
      .low = x_low, .high = x_extent.high > x_low ? x_extent.high : x_low + 1, .from = kLeft, .to = kWidth - kRight};
  const Axis y = y_axis(chart, y_extent);

  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                                kHeight, escape_html(chart.title));
  svg += axes_svg(chart, x, y);
  for (const ChartSeries& series : chart.series) {
    if (!series.points.empty()) svg += series_svg(series, x, y);
  }
  return svg + "</svg>\n";
}

}  // namespace frostpipe
