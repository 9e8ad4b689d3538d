#pragma once
#include <optional>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

/// A schedule with every name resolved, so that the simulator looks nothing up while it runs: each distinct action of a
/// pipeline rank becomes a slot, lists become slot numbers, dependencies (those of plan/) become addresses of slots.

struct SlotAddress {
  int pipeline_rank = 0;
  int slot = 0;
};

enum class SlotKind { work, send, receive };

struct Slot {
  Action action;
  SlotKind kind = SlotKind::work;
  int first_dependency = 0, end_dependency = 0;       // range in Program::dependencies
  std::optional<int> link = std::nullopt;             // of a SEND: index into Program::link_pipeline_ranks
  std::optional<SlotAddress> partner = std::nullopt;  // of a SEND its RECV, and the other way round
};

/// One pipeline rank's lists.
struct Program {
  std::vector<Slot> slots;
  /// None: of an action that stands in no list. Who depends on it waits without end.
  std::vector<std::optional<SlotAddress>> dependencies;
  std::vector<int> link_pipeline_ranks;       // pipeline ranks that this one sends to
  std::vector<int> prologue, body, epilogue;  // slot numbers
};

/// One program per pipeline rank. An action of another iteration (iteration_offset) shares the slot of its name: runs
/// of one name are counted over the whole schedule.
std::vector<Program> resolve(const Schedule& lowered);

}  // namespace frostpipe
