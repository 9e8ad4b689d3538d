#pragma once
#include <optional>
#include <string>
#include <vector>

namespace frostpipe {

struct ChartPoint {
  double x = 0;
  double y = 0;
};

/// One line of a chart. `css_class` gives its colour ("run-0", "run-1", ...).
struct ChartSeries {
  enum class Shape { line, steps, line_with_dots, faint_line };
  std::string name;
  std::string css_class;
  Shape shape = Shape::line;
  std::vector<ChartPoint> points;
};

struct Chart {
  std::string title;
  std::string x_label, y_label;
  std::vector<ChartSeries> series;
  /// The ends of the y axis; if not set, they follow from the data, with a little room.
  std::optional<double> y_low, y_high;
};

/// Returns an inline SVG of the chart; an empty text for a chart without points. Points that are not finite are left
/// out.
std::string to_svg(const Chart& chart);

}  // namespace frostpipe
