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
  std::uint16_t link = 0;     // of a SEND: the position's links, by destination
  std::uint32_t message = 0;  // of a SEND and its RECV
};

/// One position's body.
struct PositionProgram {
  std::vector<Step> steps;
  int num_links = 0;
};

/// One program per position; nothing unless every action stands behind all that it needs of its own position, and
/// nothing twice.
std::optional<std::vector<PositionProgram>> position_programs(const Schedule& lowered);

/// Messages have numbers below this.
std::size_t num_messages(const std::vector<PositionProgram>& programs);

}  // namespace frostpipe
