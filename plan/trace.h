#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/timeline.h"
#include "base/units.h"
#include "plan/action.h"

namespace frostpipe {

/// One action from start to end. A SEND never blocks its rank: if simulated, its span is the time on the link until
/// arrival; if measured, it is the moment of issue. A RECV spans the wait at the point of use.
struct Span {
  int rank = 0;
  int step = 0;  // optimizer step of the run (iteration of the simulation)
  Action action;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  bool operator==(const Span&) const = default;
};

/// Something outside the schedule: "transformation", "freeze decision", "evaluation".
struct Event {
  int rank = 0;
  std::string name;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  bool operator==(const Event&) const = default;
};

/// The common result of simulator and executor: what happened, predicted or measured. Times count from the trace's
/// start.
struct Trace {
  int num_ranks = 0;
  std::vector<Span> spans;
  std::vector<Event> events;
  /// The names of the stages, by number: those of a net's operators if it ran by an operator plan. Empty where stages
  /// have only numbers.
  std::vector<std::string> stage_names;
  bool operator==(const Trace&) const = default;
};

/// Returns the name of a span's action for the user: that of its stage where the trace names stages, else "2F0".
std::string label_of(const Trace& trace, const Span& span);

/// Returns the spans of one step, shifted so that the earliest starts at 0, without events.
Trace step_of(const Trace& trace, int step);

/// Writes the envelope "frostpipe.trace"; the inverse reads it.
std::string to_json(const Trace& trace);
Trace trace_from_json(std::string_view json, std::string_view source);

/// Returns a timeline with one process per rank, whose threads are its compute, its communication and its events.
Timeline timeline_of(const Trace& trace);
std::string to_chrome_trace(const Trace& trace);

}  // namespace frostpipe
