#include "plan/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/chrome_trace.h"
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

/// Readers of a trace allocate memory per rank, so a short file must not announce more ranks than this.
constexpr std::size_t kMaxRanksWithoutSpans = 256;

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

}  // namespace

void check(const json::Place& place, const Trace& trace) {
  const std::size_t max_ranks = kMaxRanksWithoutSpans + trace.spans.size() + trace.events.size();
  if (static_cast<std::size_t>(trace.num_ranks) > max_ranks)
    throw InvalidInput(
        json::Place(place, "num_ranks").text(),
        fmt::format("must be <= {}, for {} spans and {} events", max_ranks, trace.spans.size(), trace.events.size()),
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

Timeline timeline_of(const Trace& trace) {
  Timeline timeline;
  for (int rank = 0; rank < trace.num_ranks; ++rank) {
    timeline.add_process(rank, fmt::format("rank {}", rank));
    for (int thread = 0; thread < kNumThreads; ++thread) timeline.add_thread(rank, thread, kThreadNames[thread]);
  }
  for (const Span& span : trace.spans) {
    const auto [category, color] = look_of(span.action.kind);
    TimelineSpan& shown =
        timeline.spans.emplace_back(TimelineSpan{.name = label_of(trace, span),
                                                 .category = category,
                                                 .process = span.rank,
                                                 .thread = thread_of(span.action.kind),
                                                 .begin_ns = span.begin_ns,
                                                 .end_ns = span.end_ns,
                                                 .color = color,
                                                 .values = {{"step", span.step}, {"stage", span.action.stage}}});
    if (span.action.micro_batch) shown.values.emplace_back("micro_batch", *span.action.micro_batch);
  }
  for (const Event& event : trace.events)
    timeline.spans.push_back({.name = event.name,
                              .category = "run",
                              .process = event.rank,
                              .thread = kRun,
                              .begin_ns = event.begin_ns,
                              .end_ns = event.end_ns});
  return timeline;
}

std::string to_chrome_trace(const Trace& trace) { return to_chrome_trace(timeline_of(trace)); }

}  // namespace frostpipe
