#include "cli/plans/replan_text.h"

#include <fmt/format.h>

#include <optional>

#include "cli/shared/report_words.h"
#include "cli/shared/shape_text.h"
#include "cli/shared/table.h"
#include "plan/stages.h"
#include "planner/cache_gain.h"

namespace frostpipe {
namespace {

/// Returns the row of the table that describes one way to go on.
std::vector<std::string> row_of(const Continuation& way, bool is_chosen) {
  const Phase& first = way.phases.front();
  std::string parts, iterations;
  for (const Phase& phase : way.phases) {
    parts += (parts.empty() ? "" : ", ") + to_string(phase.cache, phase.first_trainable_layer);
    iterations += (iterations.empty() ? "" : " / ") + in_milliseconds(phase.predicted.iteration_ns);
  }
  return {is_chosen ? "*" : "",
          shape_text(first),
          to_brief_string(first.partition),
          std::to_string(first.num_micro_batches),
          parts,
          iterations,
          in_milliseconds(first.predicted.transformation_ns),
          format_duration(way.predicted_ns)};
}

/// Says what filling the cache costs and a hit saves in the layout with which the cached way begins, and after how many
/// steps of hits it has paid. Empty if that layout was not considered without a cache.
std::string break_even_text(const Continuation& cached, const std::vector<Continuation>& ways) {
  const std::optional<CacheGain> gain = cache_gain(cached, ways);
  if (!gain) return {};
  const auto amount = [](Nanoseconds time_ns) {
    return time_ns > 0 ? in_milliseconds(time_ns) + " ms a step" : "nothing";
  };
  const std::string costs = fmt::format("; filling costs {} over {}, a hit saves {}", amount(gain->fill_extra_ns),
                                        plural(gain->fill_steps, "step"), amount(gain->hit_saved_ns));
  const std::optional<double> hit_steps = break_even_hit_steps(*gain);
  return hit_steps ? costs + fmt::format(": paid back after {:.1f} hit steps", *hit_steps) : costs;
}

/// Says whether the chosen way uses the cache, and why. The predicted time of the rest of the run decides.
std::string cache_text(const ReplanResult& result) {
  if (!result.why_no_cache.empty()) return "no cache: " + result.why_no_cache + "\n";
  const Continuation* const cached = best_with_cache(result);
  if (!cached) return "no cache: no layout with it fits\n";
  const Continuation* const plain = best_without_cache(result);
  if (!plain) return "the cache is used: no layout without it fits\n";
  return fmt::format("the cache is {}: the rest of the run takes {} with it, {} without{}\n",
                     result.chosen.parts.empty() ? "not used" : "used", format_duration(cached->predicted_ns),
                     format_duration(plain->predicted_ns), break_even_text(*cached, result.candidates));
}

}  // namespace

std::string explanation_of(const ReplanRequest& request, const ReplanResult& result, const Model& model) {
  using enum Table::Align;
  Table table({{"", left},
               {"stages x replicas", right},
               {"partition", left},
               {"micro-batches", right},
               {"cache", left},
               {"iteration [ms]", left},
               {"change [ms]", right},
               {"time left", right}});
  for (const Continuation& way : result.candidates) table.add_row(row_of(way, way.phases == result.chosen.phases));
  const int frozen = frozen_blocks(model, request.first_trainable_layer);
  const std::string text = fmt::format("\nstep {}: {} block{} frozen; * is chosen\n{}", request.from_step, frozen,
                                       frozen == 1 ? "" : "s", table.to_string());
  return text + cache_text(result);
}

}  // namespace frostpipe
