#pragma once
// Implementation header: JSON keys of Trace, shared by trace.cpp, summary.cpp and comparison.cpp. Include it from .cpp
// files only.
#include "base/json_reader.h"
#include "plan/trace.h"

namespace frostpipe {

inline void parse_text(std::string_view text, const std::string& place, Action& action) {
  action = parse_action(text, place);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Span>& span) {
  archive("rank", span.rank, json::at_least(0));
  archive("step", span.step, json::at_least(0));
  archive("action", span.action);
  archive("begin_ns", span.begin_ns, json::at_least(0));
  archive("end_ns", span.end_ns, json::at_least(0));
  // The action's text does not contain this flag.
  std::optional<bool> joined;
  if (span.action.overlaps_next) joined = true;
  archive("joined_with_next", joined);
  if constexpr (!std::is_const_v<json::Value<Archive, Span>>) span.action.overlaps_next = joined.value_or(false);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Event>& event) {
  archive("rank", event.rank, json::at_least(0));
  archive("name", event.name);
  archive("begin_ns", event.begin_ns, json::at_least(0));
  archive("end_ns", event.end_ns, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Trace>& trace) {
  archive("num_ranks", trace.num_ranks, json::between(0, json::kMaxRanks));
  archive("spans", trace.spans);
  archive("events", trace.events);
  archive("stage_names", trace.stage_names, json::MayBeMissing());
}

/// Throws InvalidInput unless every span and event belongs to one of the ranks and ends no earlier than it begins,
/// every span is of a stage that has a name where stages have names, and the number of ranks is plausible for the
/// number of spans and events.
void check(const json::Place& place, const Trace& trace);

}  // namespace frostpipe
