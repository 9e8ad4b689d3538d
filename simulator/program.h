#pragma once
#include <optional>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

// A schedule with all names resolved, so that the simulator needs no look-ups while it runs: each distinct action of a
// pipeline rank becomes a slot, lists become slot numbers, and dependencies (those of plan/) become addresses of slots.

struct SlotAddress {
  int pipeline_rank = 0;
  int slot = 0;
};

enum class SlotKind { work, send, receive };

struct Slot {
  Action action;
  SlotKind kind = SlotKind::work;
  int first_dependency = 0, end_dependency = 0;       // range in Program::dependencies
  std::optional<int> link = std::nullopt;             // for a SEND, index into Program::link_pipeline_ranks
  std::optional<SlotAddress> partner = std::nullopt;  // for a SEND its RECV, and vice versa
};

/// The lists of one pipeline rank, as slots.
struct Program {
  std::vector<Slot> slots;
  /// The dependencies of all slots. None = an action that is in no list; actions that depend on it wait forever.
  std::vector<std::optional<SlotAddress>> dependencies;
  std::vector<int> link_pipeline_ranks;       // pipeline ranks that this one sends to
  std::vector<int> prologue, body, epilogue;  // slot numbers
};

/// Returns one program per pipeline rank. An action with an iteration_offset shares the slot of the same action without
/// one: the runs of a slot are counted over the whole schedule. Throws InvalidInput for a stage that the schedule does
/// not have, and for stages, micro-batches or token slices beyond 65535, 1048574 and 65534.
std::vector<Program> resolve(const Schedule& lowered);

}  // namespace frostpipe
