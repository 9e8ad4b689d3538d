#include "cli/replan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/table.h"

namespace frostpipe {
namespace {

/// One way to go on, in a row.
std::vector<std::string> row_of(const Continuation& way, bool is_chosen) {
  const Phase& first = way.phases.front();
  std::string parts, iterations;
  for (const Phase& phase : way.phases) {
    parts += (parts.empty() ? "" : ", ") + to_string(phase.cache, phase.first_trainable_layer);
    iterations += (iterations.empty() ? "" : " / ") + in_milliseconds(phase.predicted.iteration_ns);
  }
  return {is_chosen ? "*" : "", fmt::format("{} x {}", first.layout.pipeline_parallel_size, first.layout.data_parallel_size),
          to_brief_string(first.partition), std::to_string(first.num_micro_batches), parts, iterations,
          in_milliseconds(first.predicted.transformation_ns), format_duration(way.predicted_ns)};
}

/// After how many hit steps the fill has paid, in words.
std::string break_even(const Continuation& cached, const std::vector<Continuation>& ways) {
  const Phase& fill = cached.phases.front();
  const Phase& hit = cached.phases.back();
  for (const Continuation& way : ways) {
    const Phase& plain = way.phases.front();
    if (plain.cache.on || plain.partition != fill.partition || plain.num_micro_batches != fill.num_micro_batches || plain.schedule != fill.schedule) continue;
    const Nanoseconds extra = fill.predicted.iteration_ns - plain.predicted.iteration_ns;
    const Nanoseconds saved = plain.predicted.iteration_ns - hit.predicted.iteration_ns;
    const int fill_steps = cached.parts.front().end_step - cached.parts.front().from_step;
    const std::string costs = fmt::format("filling costs {} ms a step over {} steps, a hit saves {} ms", in_milliseconds(extra), fill_steps, in_milliseconds(saved));
    if (saved <= 0) return costs + ": the cache never pays";
    return costs + fmt::format(": paid back after {:.1f} hit steps", std::max(0.0, static_cast<double>(extra) * fill_steps / static_cast<double>(saved)));
  }
  return {};
}

}  // namespace

std::string explanation_of(const ReplanRequest& request, const ReplanResult& result, const Model& model) {
  using enum Table::Align;
  Table table({{"", left}, {"stages x replicas", right}, {"partition", left}, {"micro-batches", right}, {"cache", left},
               {"iteration [ms]", left}, {"change [ms]", right}, {"time left", right}});
  for (const Continuation& way : result.candidates) table.add_row(row_of(way, way.phases == result.chosen.phases));
  std::string text = fmt::format("\nstep {}: {} layers frozen; * is done\n{}", request.from_step,
                                 frozen_blocks(model, request.first_trainable_layer), table.to_string());
  if (!result.why_no_cache.empty()) return text + "no cache: " + result.why_no_cache + "\n";
  const auto cached = std::min_element(result.candidates.begin(), result.candidates.end(), [](const Continuation& a, const Continuation& b) {
    return std::pair(a.parts.empty(), a.predicted_ns) < std::pair(b.parts.empty(), b.predicted_ns);
  });
  const std::string words = cached->parts.empty() ? "" : break_even(*cached, result.candidates);
  return words.empty() ? text : text + words + "\n";
}

}  // namespace frostpipe
