#pragma once
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/link_queue.h"
#include "simulator/cost_model.h"
#include "simulator/program.h"

namespace frostpipe {

/// A part of an action that is not a message.
struct Work {
  Nanoseconds duration_ns = 0;
  std::optional<int> group = std::nullopt;  // number of the group that performs a collective; none = compute
};

/// The cost of a slot on one rank: ranges of EventRunner::work and EventRunner::shared, and the cost of its message.
struct SlotCost {
  int first_work = 0;
  int end_work = 0;
  int first_shared = 0;
  int end_shared = 0;
  TransferCost transfer;
};

/// The progress of one rank through its pipeline rank's list.
struct EventRunner {
  int rank = 0;
  int pipeline_rank = 0;
  int replica = 0;
  const Program* program = nullptr;
  std::vector<SlotCost> costs;                  // per slot
  std::vector<Work> work;                       // for all slots
  std::vector<SharedOccupancy> shared;          // for all slots
  std::vector<int> started, finished;           // number of runs, per slot; a SEND is finished when it arrives
  std::vector<LinkQueue> links;                 // per link of the program
  std::size_t next = 0;                         // index into the whole run: prologue, body x iterations, epilogue
  std::optional<int> next_work = std::nullopt;  // next work of the current action; none = it has not started
  Nanoseconds reached_ns = 0;                   // time at which the rank reached the action
  bool in_rendezvous = false;                   // its SEND is being transferred to the receiver
  std::size_t next_span = 0;                    // index into the trace's spans

  /// Returns the length of the whole run, in actions.
  std::size_t length(int iterations) const {
    return program->prologue.size() + program->body.size() * iterations + program->epilogue.size();
  }

  /// Returns the slot and the iteration of the runner's current action.
  std::pair<int, int> current(int iterations) const {
    std::size_t index = next;
    if (index < program->prologue.size()) return {program->prologue[index], 0};
    index -= program->prologue.size();
    if (index < program->body.size() * iterations)
      return {program->body[index % program->body.size()], static_cast<int>(index / program->body.size())};
    return {program->epilogue[index - program->body.size() * iterations], iterations - 1};
  }
};

}  // namespace frostpipe
