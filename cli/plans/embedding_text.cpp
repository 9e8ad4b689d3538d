#include "cli/plans/embedding_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shared/report_words.h"

namespace frostpipe {

WhatIf embedding_what_if(const std::string& run, const EmbeddingFreeze& found) {
  const double change_percent = 100.0 * static_cast<double>(found.iteration_ns - found.baseline_iteration_ns) /
                                static_cast<double>(std::max<Nanoseconds>(1, found.baseline_iteration_ns));
  return {.name = fmt::format("freezing the embedding alone, {}", run),
          .iteration_ns = found.iteration_ns,
          .baseline_iteration_ns = found.baseline_iteration_ns,
          .sentence =
              fmt::format("The embedding holds {:.0f} % of the parameters; freezing it and nothing else would "
                          "take an iteration of {} from {} to {} ({:+.0f} %).",
                          100 * found.parameter_share, run_in_words(run), format_duration(found.baseline_iteration_ns),
                          format_duration(found.iteration_ns), change_percent)};
}

}  // namespace frostpipe
