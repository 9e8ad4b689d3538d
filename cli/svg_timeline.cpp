#include "cli/svg_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/svg.h"
#include "profiles/units.h"

namespace frostpipe {
namespace {

constexpr double kTimelineWidth = 1000, kTimelineLeft = 58, kTimelineRight = 12;
constexpr double kTitle = 18, kLane = 27, kBox = 20, kStrip = 4, kGroupGap = 10, kAxis = 34;
constexpr double kSmallest = 0.4;  // narrower boxes are left out

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

std::string span_svg(const Span& span, Nanoseconds origin, double pixels_per_ns, double lane_top) {
  const double x = kTimelineLeft + static_cast<double>(span.begin_ns - origin) * pixels_per_ns;
  const double width = static_cast<double>(span.end_ns - span.begin_ns) * pixels_per_ns;
  if (width < kSmallest) return "";
  const bool is_message = is_send(span.action.kind);
  std::string svg = fmt::format(
      "<g><title>{} on rank {}: {}, from {}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.2f}\" "
      "height=\"{}\"/>",
      to_string(span.action), span.rank, format_duration(span.end_ns - span.begin_ns),
      format_duration(span.begin_ns - origin), css_class(span.action.kind), coordinate(x),
      coordinate(is_message ? lane_top + kBox + 1 : lane_top), std::max(0.5, width - 0.4), is_message ? kStrip : kBox);
  if (is_compute(span.action.kind) && span.action.micro_batch) {
    const std::string number = std::to_string(*span.action.micro_batch);
    if (width > 7.0 * static_cast<double>(number.size()) + 2) {
      svg += fmt::format("<text class=\"number\" x=\"{}\" y=\"{}\">{}</text>", coordinate(x + width / 2),
                         coordinate(lane_top + kBox / 2 + 4), number);
    }
  }
  return svg + "</g>\n";
}

std::string group_svg(std::string_view title, const Trace& trace, double pixels_per_ns, double top) {
  std::string svg = fmt::format("<text class=\"group\" x=\"0\" y=\"{}\">{} <tspan class=\"tick\">{}</tspan></text>\n",
                                coordinate(top + 12), title, format_duration(length_of(trace)));
  for (int rank = 0; rank < trace.num_ranks; ++rank) {
    const double lane_top = top + kTitle + rank * kLane;
    svg +=
        fmt::format("<text class=\"tick\" x=\"0\" y=\"{}\">rank {}</text>", coordinate(lane_top + kBox / 2 + 4), rank);
    svg += fmt::format("<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kTimelineLeft,
                       coordinate(lane_top), kTimelineWidth - kTimelineLeft - kTimelineRight, kBox);
  }
  const Nanoseconds origin = begin_of(trace);
  for (const Span& span : trace.spans) {
    svg += span_svg(span, origin, pixels_per_ns, top + kTitle + span.rank * kLane);
  }
  return svg;
}

std::string axis_svg(Nanoseconds longest, double pixels_per_ns, double top) {
  const double milliseconds = static_cast<double>(longest) / 1e6;
  const std::vector<double> ticks = nice_ticks(0, milliseconds, 10);
  std::string svg;
  for (const double tick : ticks) {
    const std::string x = coordinate(kTimelineLeft + tick * 1e6 * pixels_per_ns);
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", x, x, coordinate(kTitle - 2),
                       coordinate(top + 4));
    svg += fmt::format("<text class=\"tick middle\" x=\"{}\" y=\"{}\">{}</text>", x, coordinate(top + 17),
                       tick_label(tick, ticks));
  }
  return svg + fmt::format("<text class=\"tick\" x=\"0\" y=\"{}\">ms</text>\n", coordinate(top + 17));
}

}  // namespace

std::string timeline_svg(const Trace& predicted, const Trace& measured) {
  const Nanoseconds longest = std::max(length_of(predicted), length_of(measured));
  if (longest <= 0) return "";
  const double pixels_per_ns = (kTimelineWidth - kTimelineLeft - kTimelineRight) / static_cast<double>(longest);

  double height = 0;
  std::string groups;
  const std::pair<std::string_view, const Trace*> parts[] = {{"predicted", &predicted}, {"measured", &measured}};
  for (const auto& [title, trace] : parts) {
    if (trace->spans.empty()) continue;
    if (height > 0) height += kGroupGap;
    groups += group_svg(title, *trace, pixels_per_ns, height);
    height += kTitle + trace->num_ranks * kLane;
  }
  return fmt::format("<svg class=\"timeline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"timeline\">\n",
                     kTimelineWidth, coordinate(height + kAxis)) +
         axis_svg(longest, pixels_per_ns, height) + groups + "</svg>\n";
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
