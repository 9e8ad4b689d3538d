#include "plan/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/trace_json.h"

namespace frostpipe {

namespace {

template <class Element>
void check_element(const json::Place& place, const Element& element, int num_ranks) {
  if (element.rank >= num_ranks)
    throw InvalidInput(json::Place(place, "rank").text(), fmt::format("must be < {}, the number of ranks", num_ranks),
                       std::to_string(element.rank));
  if (element.end_ns < element.begin_ns)
    throw InvalidInput(json::Place(place, "end_ns").text(),
                       fmt::format("must be >= {}, its begin_ns", element.begin_ns), std::to_string(element.end_ns));
}

/// Whoever shows a trace has a place for each rank: there may be no more of them than the file is long.
constexpr std::size_t kMostRanksWithoutSpans = 256;

/// Threads of a rank in the Chrome trace. Messages of the two directions overlap each other and compute.
enum Thread { kCompute, kWaitingThread, kSendForward, kSendBackward, kRun, kNumThreads };
constexpr const char* kThreadNames[kNumThreads] = {"compute", "receive and reduce", "send forward", "send backward",
                                                   "run"};

Thread thread_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::send_forward:
      return kSendForward;
    case ActionKind::send_backward:
      return kSendBackward;
    case ActionKind::recv_forward:
    case ActionKind::recv_backward:
    case ActionKind::reduce_gradient:
    case ActionKind::unshard:
    case ActionKind::reshard:
    case ActionKind::cache_read:
    case ActionKind::cache_write:
      return kWaitingThread;
    default:
      return kCompute;
  }
}

struct Look {
  const char* category;
  const char* color;  // one of the trace viewer's reserved names
};

Look look_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return {"forward", "thread_state_running"};
    case ActionKind::backward:
    case ActionKind::input_gradient:
    case ActionKind::weight_gradient:
    case ActionKind::recompute:
      return {"backward", "rail_response"};
    case ActionKind::optimizer_step:
      return {"update", "rail_load"};
    default:
      return {"communication", "generic_work"};
  }
}

double microseconds(Nanoseconds duration) { return static_cast<double>(duration) / 1000.0; }

json::Json complete_event(std::string name, const char* category, int rank, Thread thread, Nanoseconds begin,
                          Nanoseconds end) {
  return {{"name", std::move(name)},
          {"cat", category},
          {"ph", "X"},
          {"ts", microseconds(begin)},
          {"dur", microseconds(end - begin)},
          {"pid", rank},
          {"tid", static_cast<int>(thread)}};
}

json::Json metadata_event(const char* what, int rank, int thread, std::string name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", std::move(name)}}}};
}

}  // namespace

void check(const json::Place& place, const Trace& trace) {
  const std::size_t most_ranks = kMostRanksWithoutSpans + trace.spans.size() + trace.events.size();
  if (static_cast<std::size_t>(trace.num_ranks) > most_ranks)
    throw InvalidInput(
        json::Place(place, "num_ranks").text(),
        fmt::format("must be <= {}, for {} spans and {} events", most_ranks, trace.spans.size(), trace.events.size()),
        std::to_string(trace.num_ranks));
  const json::Place spans(place, "spans"), events(place, "events");
  const auto num_names = static_cast<int>(trace.stage_names.size());
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    check_element(json::Place(spans, i), trace.spans[i], trace.num_ranks);
    if (num_names > 0 && trace.spans[i].action.stage >= num_names)
      throw InvalidInput(json::Place(json::Place(spans, i), "action").text(),
                         fmt::format("must be of one of the {} stages that stage_names names", num_names),
                         to_string(trace.spans[i].action));
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    check_element(json::Place(events, i), trace.events[i], trace.num_ranks);
}

std::string label_of(const Trace& trace, const Span& span) {
  return trace.stage_names.empty() ? to_string(span.action) : trace.stage_names.at(span.action.stage);
}

Trace step_of(const Trace& trace, int step) {
  Trace one{.num_ranks = trace.num_ranks, .spans = {}, .events = {}, .stage_names = trace.stage_names};
  Nanoseconds start = std::numeric_limits<Nanoseconds>::max();
  for (const auto& span : trace.spans) {
    if (span.step != step) continue;
    one.spans.push_back(span);
    start = std::min(start, span.begin_ns);
  }
  for (auto& span : one.spans) {
    span.begin_ns -= start;
    span.end_ns -= start;
  }
  return one;
}

std::string to_json(const Trace& trace) { return json::write_envelope("frostpipe.trace", trace); }

Trace trace_from_json(std::string_view json, std::string_view source) {
  return json::read_envelope<Trace>(json, source, "frostpipe.trace");
}

std::string to_chrome_trace(const Trace& trace) {
  json::Json events = json::Json::array();
  for (int rank = 0; rank < trace.num_ranks; ++rank) {
    events.push_back(metadata_event("process_name", rank, 0, fmt::format("rank {}", rank)));
    for (int thread = 0; thread < kNumThreads; ++thread)
      events.push_back(metadata_event("thread_name", rank, thread, kThreadNames[thread]));
  }
  for (const auto& span : trace.spans) {
    const auto [category, color] = look_of(span.action.kind);
    auto event = complete_event(label_of(trace, span), category, span.rank, thread_of(span.action.kind), span.begin_ns,
                                span.end_ns);
    event["cname"] = color;
    event["args"] = {{"step", span.step}, {"stage", span.action.stage}};
    if (span.action.micro_batch) event["args"]["micro_batch"] = *span.action.micro_batch;
    events.push_back(std::move(event));
  }
  for (const auto& event : trace.events)
    events.push_back(complete_event(event.name, "run", event.rank, kRun, event.begin_ns, event.end_ns));
  json::Json chrome = json::Json::object();
  chrome["traceEvents"] = std::move(events);
  chrome["displayTimeUnit"] = "ms";
  return json::pretty_text(chrome);
}

}  // namespace frostpipe
