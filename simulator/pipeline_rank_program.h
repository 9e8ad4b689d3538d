#pragma once
// Implementation header of the fast path.
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

enum class StepKind : std::uint8_t { compute, send, receive, other };

/// What the fast path has to know of an action beside its cost.
struct Step {
  StepKind kind = StepKind::compute;
  std::uint16_t link = 0;     // of a SEND: the pipeline rank's links, by destination
  std::uint32_t message = 0;  // of a SEND and its RECV
};

/// One pipeline rank's body.
struct PipelineRankProgram {
  std::vector<Step> steps;
  int num_links = 0;
};

/// One program per pipeline rank; nothing unless every action stands after all that it needs of its own pipeline rank,
/// and nothing twice.
std::optional<std::vector<PipelineRankProgram>> pipeline_rank_programs(const Schedule& lowered);

/// Messages have numbers below this.
std::size_t num_messages(const std::vector<PipelineRankProgram>& programs);

}  // namespace frostpipe
