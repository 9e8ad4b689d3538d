#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "plan/action.h"

namespace frostpipe {

/// One action from start to end. A SEND never blocks its rank: simulated, its span is the time on the link and until
/// arrival; measured, the moment of its issue. A RECV is the wait at the point of use.
struct Span {
  int rank = 0;
  int step = 0;  // optimizer step of the run (iteration of the simulation)
  Action action;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  bool operator==(const Span&) const = default;
};

/// What happens outside the schedule: "transformation", "freeze decision", "evaluation".
struct Event {
  int rank = 0;
  std::string name;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  bool operator==(const Event&) const = default;
};

/// What was, predicted or measured: the common result of simulator and executor. Times count from the trace's start.
struct Trace {
  int num_ranks = 0;
  std::vector<Span> spans;
  std::vector<Event> events;
  /// Names of the stages, by number: a net's operators by an operator plan. Empty where stages have numbers alone.
  std::vector<std::string> stage_names;
  bool operator==(const Trace&) const = default;
};

/// What people read of a span's action: the name of its stage where the trace has names, else "2F0".
std::string label_of(const Trace& trace, const Span& span);

/// Spans of one step, shifted so that the earliest starts at 0.
Trace step_of(const Trace& trace, int step);

/// Envelope "frostpipe.trace".
std::string to_json(const Trace& trace);
Trace trace_from_json(std::string_view json, std::string_view source);

/// Chrome trace event format (opens in Perfetto): one process per rank, compute and communication as its threads.
std::string to_chrome_trace(const Trace& trace);

}  // namespace frostpipe
