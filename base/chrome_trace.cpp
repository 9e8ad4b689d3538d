#include "base/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(Nanoseconds duration) { return 1e-3 * static_cast<double>(duration); }

Json metadata(const char* what, int process, int thread, const char* key, const Json& value) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{key, value}}}};
}

Json complete_event(const TimelineSpan& span) {
  Json event = {{"ph", "X"},
                {"name", span.name},
                {"pid", span.process},
                {"tid", span.thread},
                {"ts", microseconds(span.begin_ns)},
                {"dur", microseconds(span.end_ns - span.begin_ns)}};
  if (!span.category.empty()) event["cat"] = span.category;
  if (!span.color.empty()) event["cname"] = span.color;
  for (const auto& [name, value] : span.values) event["args"][name] = value;
  return event;
}

}  // namespace

std::string to_chrome_trace(const Timeline& timeline) {
  Json events = Json::array();
  for (const TimelineProcess& one : timeline.processes) {
    events.push_back(metadata("process_name", one.process, 0, "name", one.name));
    events.push_back(metadata("process_sort_index", one.process, 0, "sort_index", one.process));
  }
  for (const TimelineThread& one : timeline.threads)
    events.push_back(metadata("thread_name", one.process, one.thread, "name", one.name));
  for (const TimelineSpan& span : timeline.spans) events.push_back(complete_event(span));
  return json_text(Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}) + "\n";
}

}  // namespace frostpipe
