#include "cli/report/report_style.h"

namespace frostpipe {
namespace {

constexpr std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2129; --muted: #5d6878; --line: #e3e7ed; --lane: #eef1f5;
  --forward: #4c8fd6; --backward: #ee9a4d; --input: #f4bd84; --weight: #cf7630;
  --reduce: #9a78dd; --step: #43aa7d; --send: #8c97a8; --wait: #d3d9e2; --on-box: #10151c;
  --run-0: #6b788c; --run-1: #d97f1f; --run-2: #0b8c9f; --run-3: #8b5cf6; --run-4: #be3a5a; --run-5: #5b8c2a;
  --bad: #c2383f;
}
@media (prefers-color-scheme: dark) {
  :root {
  --page: #0e1217; --card: #161c24; --ink: #e7ebf1; --muted: #97a3b4; --line: #2a333f; --lane: #1f2731;
  --forward: #4a90dc; --backward: #e08d42; --input: #d3a06a; --weight: #b9682a;
  --reduce: #9275d8; --step: #3fa379; --send: #758296; --wait: #343f4d; --on-box: #0b0f14;
  --run-0: #98a5b8; --run-1: #eb9a3e; --run-2: #2fbccf; --run-3: #a78bfa; --run-4: #e8688a; --run-5: #8cc152;
  --bad: #ef7078;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 34px 22px 50px; }
h1 { font-size: 1.5rem; line-height: 1.35; font-weight: 650; margin: 4px 0 10px; letter-spacing: -0.01em; }
h2 { font-size: 1.08rem; font-weight: 650; margin: 0 0 4px; }
h3 { font-size: .95rem; font-weight: 600; margin: 18px 0 6px; }
p { margin: 0 0 10px; }
.muted, .hint { color: var(--muted); }
.hint { font-size: .88rem; margin-bottom: 12px; max-width: 80ch; }
.kicker { color: var(--muted); font-size: .85rem; margin: 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin-top: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin-top: 18px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.tile b { display: block; font-size: 1.45rem; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tile span { color: var(--muted); font-size: .83rem; display: block; line-height: 1.4; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .89rem; }
th { text-align: right; font-weight: 500; color: var(--muted); padding: 4px 7px; vertical-align: bottom;
  font-size: .82rem;
  border-bottom: 1px solid var(--line); line-height: 1.3; }
td { text-align: right; padding: 6px 7px; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
th.l, td.l { text-align: left; }
td.wrap { white-space: normal; min-width: 30ch; } td.brief { white-space: normal; } td.l.brief { min-width: 18ch; }
td small, th small { color: var(--muted); font-size: .92em; }
td.strong { font-weight: 650; }
.bad { color: var(--bad); }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 7px; }
.dot.run-0 { background: var(--run-0); } .dot.run-1 { background: var(--run-1); }
.dot.run-2 { background: var(--run-2); }
.dot.run-3 { background: var(--run-3); } .dot.run-4 { background: var(--run-4); }
.dot.run-5 { background: var(--run-5); }
.legend { font-size: .84rem; color: var(--muted); margin: 0 0 8px; display: flex; flex-wrap: wrap; gap: 4px 18px; }
.legend > span { display: inline-flex; align-items: center; }
.swatch { width: 11px; height: 11px; margin-right: 6px; border-radius: 2px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); gap: 22px 26px;
  margin-top: 10px; }
.axis-choice { position: absolute; opacity: 0; }
.axis-label { display: inline-block; padding: 3px 12px; border: 1px solid var(--line); font-size: .84rem;
  color: var(--muted);
  cursor: pointer; margin: 4px 4px 4px 0; border-radius: 14px; }
#axis-time:checked ~ label[for=axis-time], #axis-steps:checked ~ label[for=axis-steps] {
  color: var(--ink); border-color: var(--muted); font-weight: 600; }
#axis-time:focus-visible ~ label[for=axis-time],
  #axis-steps:focus-visible ~ label[for=axis-steps] { outline: 2px solid var(--forward); }
#axis-time:checked ~ .by-steps, #axis-steps:checked ~ .by-time { display: none; }
svg { display: block; width: 100%; height: auto; }
svg text { font-family: inherit; fill: var(--ink); }
.timeline { display: grid; grid-template-columns: 58px minmax(0, 1fr); padding-right: 12px; }
.timeline svg { overflow: visible; }
.timeline text, .chart text { font-size: 11px; }
svg .tick { fill: var(--muted); font-size: 11px; font-weight: 400; }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .group { font-weight: 600; font-size: 12px; }
svg .chart-title { font-size: 13px; font-weight: 600; }
svg .over { fill: var(--bad); font-weight: 600; }
svg .number { font-size: 10px; fill: var(--on-box); text-anchor: middle; pointer-events: none; }
.grid { stroke: var(--line); stroke-width: 1; } .axis { stroke: var(--muted); stroke-width: 1; }
.lane { fill: var(--lane); }
.f { fill: var(--forward); } .b { fill: var(--backward); } .i { fill: var(--input); } .w { fill: var(--weight); }
.reduce { fill: var(--reduce); } .step { fill: var(--step); } .send { fill: var(--send); } .wait { fill: var(--wait); }
.series path { fill: none; stroke-width: 2; stroke-linejoin: round; }
.series.faint path { stroke-width: 1; opacity: .22; }
.series.run-0 path { stroke: var(--run-0); } .series.run-1 path { stroke: var(--run-1); }
.series.run-2 path { stroke: var(--run-2); }
.series.run-3 path { stroke: var(--run-3); } .series.run-4 path { stroke: var(--run-4); }
.series.run-5 path { stroke: var(--run-5); }
.run-0 circle, rect.run-0 { fill: var(--run-0); } .run-1 circle, rect.run-1 { fill: var(--run-1); }
.run-2 circle, rect.run-2 { fill: var(--run-2); } .run-3 circle, rect.run-3 { fill: var(--run-3); }
.run-4 circle, rect.run-4 { fill: var(--run-4); } .run-5 circle, rect.run-5 { fill: var(--run-5); }
.soft { opacity: .45; }
.mark { stroke: var(--ink); stroke-width: 2; } .limit { stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg.inline { width: 100px; min-width: 100px; height: 16px; }
svg.interval { max-width: 420px; }
p.interval { margin: 8px 0 2px; font-size: .89rem; }
.memory { display: grid; grid-template-columns: auto minmax(120px, 1fr) auto; gap: 0 10px; align-items: center;
  max-width: 820px; font-size: .82rem;
  font-variant-numeric: tabular-nums; }
.memory span { color: var(--muted); } .memory b { font-weight: 400; text-align: right; }
svg.bar { height: 19px; } svg.bar line { vector-effect: non-scaling-stroke; }
pre { font-size: .8rem; line-height: 1.35; margin: 6px 0; }
details summary { cursor: pointer; color: var(--muted); font-size: .9rem; }
dl { margin: 10px 0 0; font-size: .89rem; } dt { font-weight: 600; margin-top: 7px; } dd { margin: 0;
  color: var(--muted); max-width: 90ch; }
footer { margin-top: 26px; color: var(--muted); font-size: .83rem; overflow-wrap: anywhere; }
@media (max-width: 900px) {
  .timeline .number:not(.roomy), .timeline .second { display: none; }
  main { padding: 20px 12px 40px; } h1 { font-size: 1.25rem; } .card { padding: 14px; }
  table, tbody, tr, td { display: block; } thead { display: none; }
  tr { padding: 6px 0; border-bottom: 1px solid var(--line); } tr:last-child { border-bottom: 0; }
  td, td.l, td.l.brief { text-align: right; white-space: normal; min-width: 0; padding: 2px 0; border: 0;
    overflow: hidden; overflow-wrap: break-word; }
  td.l.wrap { text-align: left; } td:empty { display: none; }
  td::before { content: attr(data-label); float: left; margin-right: 12px; color: var(--muted); font-weight: 400; }
  td.wrap::before { float: none; display: block; }
  svg.inline { margin-left: auto; }
}
@media (max-width: 520px) {
  .charts .chart text, .charts .chart .tick { font-size: 13px; } .charts .chart .chart-title { font-size: 16px; }
  .memory { grid-template-columns: 1fr auto; } .memory span { grid-column: 1 / -1; margin-top: 5px; }
}
@media print { body { background: #fff; } .card { break-inside: avoid; } }
)css";

}  // namespace

std::string_view report_style() { return kStyle; }

}  // namespace frostpipe
