#pragma once
// Implementation header of the fast path.
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

enum class StepKind : std::uint8_t { compute, send, receive, other };

/// The properties of an action that the fast path needs besides its cost.
struct Step {
  StepKind kind = StepKind::compute;
  std::uint16_t link = 0;     // for a SEND, index of the pipeline rank's link, by destination
  std::uint32_t message = 0;  // the same number for a SEND and its RECV
};

/// The body of one pipeline rank.
struct PipelineRankProgram {
  std::vector<Step> steps;
  int num_links = 0;
};

/// Returns one program per pipeline rank. The result is none unless every action stands after all that it needs on its
/// own pipeline rank and no action occurs twice.
std::optional<std::vector<PipelineRankProgram>> pipeline_rank_programs(const Schedule& lowered);

/// Returns an upper bound on Step::message: all numbers are below it.
std::size_t num_messages(const std::vector<PipelineRankProgram>& programs);

}  // namespace frostpipe
