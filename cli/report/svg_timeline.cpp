#include "cli/report/svg_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "cli/report/svg.h"

namespace frostpipe {
namespace {

// Heights are in pixels. Positions along the time axis are percentages, so that a picture is as wide as its page and
// its text is not scaled.
constexpr double kTitle = 18, kLane = 27, kBox = 20, kStrip = 4, kGroupGap = 10, kAxis = 34;
constexpr double kSmallest = 0.04;                        // percent; narrower boxes are left out
constexpr double kWidePixels = 930, kNarrowPixels = 280;  // width of the time axis on a wide page, and on a telephone

std::string percentage(double value) { return fmt::format("{:.2f}%", value); }

std::string_view css_class(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
    case ActionKind::recompute:
      return "f";
    case ActionKind::backward:
      return "b";
    case ActionKind::input_gradient:
      return "i";
    case ActionKind::weight_gradient:
      return "w";
    case ActionKind::send_forward:
    case ActionKind::send_backward:
      return "send";
    case ActionKind::recv_forward:
    case ActionKind::recv_backward:
      return "wait";
    case ActionKind::optimizer_step:
      return "step";
    default:
      return "reduce";
  }
}

Nanoseconds begin_of(const Trace& trace) {
  Nanoseconds begin = trace.spans.empty() ? 0 : trace.spans.front().begin_ns;
  for (const Span& span : trace.spans) begin = std::min(begin, span.begin_ns);
  return begin;
}

Nanoseconds length_of(const Trace& trace) {
  Nanoseconds end = begin_of(trace);
  for (const Span& span : trace.spans) end = std::max(end, span.end_ns);
  return end - begin_of(trace);
}

/// Returns the micro-batch's number in the middle of a box if a wide page has room for it; it has class "roomy" if a
/// narrow page has too.
std::string number_svg(int micro_batch, double x, double width, double lane_top) {
  const std::string number = std::to_string(micro_batch);
  const double needed = 7.0 * static_cast<double>(number.size()) + 2;  // pixels
  if (width / 100 * kWidePixels <= needed) return "";
  return fmt::format("<text class=\"number{}\" x=\"{}\" y=\"{}\">{}</text>",
                     width / 100 * kNarrowPixels > needed ? " roomy" : "", percentage(x + width / 2),
                     coordinate(lane_top + kBox / 2 + 4), number);
}

std::string lane_name(const std::vector<std::string>& lanes, int rank) {
  return lanes.empty() ? fmt::format("rank {}", rank) : escape_html(lanes.at(rank));
}

std::string span_svg(const Span& span, const std::string& label, const std::string& lane, Nanoseconds origin,
                     double percent_per_ns, double lane_top) {
  const double x = static_cast<double>(span.begin_ns - origin) * percent_per_ns;
  const double width = static_cast<double>(span.end_ns - span.begin_ns) * percent_per_ns;
  if (width < kSmallest) return "";
  const bool is_message = is_send(span.action.kind);
  std::string svg = fmt::format(
      "<g><title>{} on {}: {}, from {}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
      "height=\"{}\"/>",
      escape_html(label), lane, format_duration(span.end_ns - span.begin_ns), format_duration(span.begin_ns - origin),
      css_class(span.action.kind), percentage(x), coordinate(is_message ? lane_top + kBox + 1 : lane_top),
      percentage(std::max(0.05, width - 0.04)), is_message ? kStrip : kBox);
  if (is_compute(span.action.kind) && span.action.micro_batch)
    svg += number_svg(*span.action.micro_batch, x, width, lane_top);
  return svg + "</g>\n";
}

/// Draws the title of a trace and the names of its lanes.
std::string names_svg(std::string_view title, const Trace& trace, const std::vector<std::string>& lanes, double top) {
  std::string svg = fmt::format("<text class=\"group\" x=\"0\" y=\"{}\">{} <tspan class=\"tick\">{}</tspan></text>\n",
                                coordinate(top + 12), title, format_duration(length_of(trace)));
  for (int rank = 0; rank < trace.num_ranks; ++rank)
    svg += fmt::format("<text class=\"tick\" x=\"0\" y=\"{}\">{}</text>",
                       coordinate(top + kTitle + rank * kLane + kBox / 2 + 4), lane_name(lanes, rank));
  return svg;
}

std::string lanes_svg(const Trace& trace, const std::vector<std::string>& lanes, double percent_per_ns, double top) {
  std::string svg;
  for (int rank = 0; rank < trace.num_ranks; ++rank)
    svg += fmt::format("<rect class=\"lane\" x=\"0\" y=\"{}\" width=\"100%\" height=\"{}\"/>\n",
                       coordinate(top + kTitle + rank * kLane), kBox);
  const Nanoseconds origin = begin_of(trace);
  for (const Span& span : trace.spans)
    svg += span_svg(span, label_of(trace, span), lane_name(lanes, span.rank), origin, percent_per_ns,
                    top + kTitle + span.rank * kLane);
  return svg;
}

/// Draws the time axis. Every other label has class "second", since a narrow page has no room for it.
std::string axis_svg(Nanoseconds longest, double percent_per_ns, double top) {
  const double milliseconds = static_cast<double>(longest) / 1e6;
  const std::vector<double> ticks = nice_ticks(0, milliseconds, 10);
  std::string svg;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const std::string x = percentage(ticks[i] * 1e6 * percent_per_ns);
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", x, x, coordinate(kTitle - 2),
                       coordinate(top + 4));
    svg += fmt::format("<text class=\"tick middle{}\" x=\"{}\" y=\"{}\">{}</text>", i % 2 == 1 ? " second" : "", x,
                       coordinate(top + 17), tick_label(ticks[i], ticks));
  }
  return svg;
}

}  // namespace

std::string timeline_html(const Trace& predicted, const Trace& measured, const std::vector<std::string>& lane_names) {
  const Nanoseconds longest = std::max(length_of(predicted), length_of(measured));
  if (longest <= 0) return "";
  const double percent_per_ns = 100 / static_cast<double>(longest);

  double height = 0;
  std::string names, lanes;
  const std::pair<std::string_view, const Trace*> parts[] = {{"predicted", &predicted}, {"measured", &measured}};
  for (const auto& [title, trace] : parts) {
    if (trace->spans.empty()) continue;
    if (height > 0) height += kGroupGap;
    names += names_svg(title, *trace, lane_names, height);
    lanes += lanes_svg(*trace, lane_names, percent_per_ns, height);
    height += kTitle + trace->num_ranks * kLane;
  }
  names += fmt::format("<text class=\"tick\" x=\"0\" y=\"{}\">ms</text>\n", coordinate(height + 17));
  return fmt::format(
      "<div class=\"timeline\"><svg style=\"height:{0}px\">{1}</svg>"
      "<svg style=\"height:{0}px\" role=\"img\" aria-label=\"timeline\">\n{2}{3}</svg></div>\n",
      coordinate(height + kAxis), names, axis_svg(longest, percent_per_ns, height), lanes);
}

std::string timeline_legend() {
  constexpr std::pair<std::string_view, std::string_view> kColours[] = {{"f", "forward"},
                                                                        {"b", "backward"},
                                                                        {"reduce", "gradient all-reduce"},
                                                                        {"step", "optimizer step"},
                                                                        {"wait", "waiting for a message"},
                                                                        {"send", "message on the link"}};
  std::string html = "<p class=\"legend\">";
  for (const auto& [name, meaning] : kColours) {
    html += fmt::format(
        "<span><svg class=\"swatch\" viewBox=\"0 0 12 12\"><rect class=\"{}\" width=\"12\" height=\"12\"/>"
        "</svg>{}</span>",
        name, meaning);
  }
  return html + "<span class=\"muted\">Numbers are micro-batches; point at a box for its times.</span></p>\n";
}

}  // namespace frostpipe
