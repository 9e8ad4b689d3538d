#include "cli/report/schedule_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/svg.h"
#include "cli/shared/report_words.h"

namespace frostpipe {
namespace {

constexpr double kMarginLeft = 56, kMarginRight = 16, kMarginTop = 44, kRowHeight = 26, kBoxHeight = 22,
                 kUnitWidth = 26, kWidest = 2400, kAxisHeight = 30;

constexpr const char* kSvgStyle = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #333; }
.title { font-weight: 600; font-size: 14px; }
.cell { text-anchor: middle; font-size: 11px; }
.F { fill: #8ab6e8; } .B { fill: #8fcf9f; } .I { fill: #a9dbb4; } .W { fill: #d7c47a; } .R { fill: #c9b3e6; }
rect { stroke: #fff; stroke-width: 1; }
.idle { fill: #f1f1f1; stroke: none; }
line { stroke: #ddd; }
</style>
)";

char letter_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return 'F';
    case ActionKind::backward:
      return 'B';
    case ActionKind::input_gradient:
      return 'I';
    case ActionKind::weight_gradient:
      return 'W';
    default:
      return 'R';
  }
}

std::string action_box(const Schedule& schedule, const Span& span, double x, double y, double width) {
  const Action& action = span.action;
  // The more earlier stages the rank has, the darker is the box.
  int earlier = 0;
  for (int stage = 0; stage < action.stage; ++stage)
    earlier += schedule.pipeline_rank_of_stage[stage] == schedule.pipeline_rank_of_stage[action.stage];
  std::string svg = fmt::format(
      "<g><title>{} on rank {}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"",
      to_string(action), span.rank, letter_of(action.kind), coordinate(x), coordinate(y), width, kBoxHeight);
  if (earlier > 0) svg += fmt::format(" style=\"filter: brightness({:.2f})\"", std::max(0.5, 1 - 0.14 * earlier));
  svg += "/>";
  std::string label = std::to_string(action.micro_batch.value_or(0));
  if (action.slice) label += fmt::format("s{}", *action.slice);
  if (width > 7.0 * static_cast<double>(label.size()) + 1)
    svg += fmt::format("<text class=\"cell\" x=\"{}\" y=\"{}\">{}</text>", coordinate(x + width / 2),
                       coordinate(y + kBoxHeight / 2 + 4), label);
  return svg + "</g>\n";
}

std::string schedule_legend() {
  std::string svg;
  double x = kMarginLeft;
  for (const auto& [letter, meaning] : {std::pair{'F', "forward"}, std::pair{'B', "backward"},
                                        std::pair{'I', "input gradient"}, std::pair{'W', "weight gradient"}}) {
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"24\" width=\"12\" height=\"12\"/><text x=\"{}\" y=\"34\">{}</text>", letter,
        coordinate(x), coordinate(x + 16), meaning);
    x += 110;
  }
  return svg + "\n";
}

}  // namespace

std::string schedule_svg(const Schedule& compute, const Trace& trace, Nanoseconds unit_ns) {
  Nanoseconds end = 0;
  for (const Span& span : trace.spans) end = std::max(end, span.end_ns);
  const double units = static_cast<double>(end) / static_cast<double>(unit_ns);
  const double unit = std::min(kUnitWidth, kWidest / std::max(1.0, units)),
               per_ns = unit / static_cast<double>(unit_ns);
  const double width = kMarginLeft + std::max(units * unit, 420.0) + kMarginRight,
               bottom = kMarginTop + trace.num_ranks * kRowHeight;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">\n",
      coordinate(width), coordinate(bottom + kAxisHeight), coordinate(width), coordinate(bottom + kAxisHeight));
  svg += kSvgStyle;
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"15\">{}: {}, {}, {}</text>\n", kMarginLeft,
                     escape_html(compute.name), plural(num_pipeline_ranks(compute), "rank"),
                     plural(num_stages(compute), "stage"), plural(compute.num_micro_batches, "micro-batch"));
  svg += schedule_legend();
  const std::vector<double> ticks = nice_ticks(0, std::max(units, 1.0), 12);
  for (const double tick : ticks) {
    const std::string x = coordinate(kMarginLeft + tick * unit);
    svg +=
        fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/><text class=\"cell\" x=\"{}\" y=\"{}\">{}</text>\n",
                    x, x, kMarginTop, coordinate(bottom + 4), x, coordinate(bottom + 18), tick_label(tick, ticks));
  }
  for (int rank = 0; rank < trace.num_ranks; ++rank) {
    const double y = kMarginTop + rank * kRowHeight;
    svg += fmt::format(
        "<text x=\"0\" y=\"{}\">rank {}</text><rect class=\"idle\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
        coordinate(y + kBoxHeight / 2 + 4), rank, kMarginLeft, coordinate(y), coordinate(units * unit), kBoxHeight);
  }
  for (const Span& span : trace.spans) {
    if (!is_compute(span.action.kind)) continue;
    svg += action_box(compute, span, kMarginLeft + static_cast<double>(span.begin_ns) * per_ns,
                      kMarginTop + span.rank * kRowHeight, static_cast<double>(span.end_ns - span.begin_ns) * per_ns);
  }
  return svg + "</svg>\n";
}

}  // namespace frostpipe
