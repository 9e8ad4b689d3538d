#include "cli/serving/serving_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kThreadsOfADevice = 2;

int thread_of(const ServingSpan& span) {
  return kThreadsOfADevice * span.virtual_device + (span.kind == ServingSpan::Kind::transfer ? 1 : 0);
}

Json name_of(const char* what, int process, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

void add_names(const ServingRun& run, const PoolUse& pool, int process, Json& events) {
  const std::string share = pool.share > 1 ? fmt::format("1/{} ", pool.share) : "";
  events.push_back(name_of("process_name", process, 0,
                           fmt::format("{}, pipeline {}, partition {}: {}{}", run.model, pool.pipeline, pool.partition,
                                       share, pool.device_class)));
  events.push_back(
      {{"ph", "M"}, {"name", "process_sort_index"}, {"pid", process}, {"args", {{"sort_index", process}}}});
  for (int device = 0; device < pool.num_virtual_devices; ++device) {
    const int thread = kThreadsOfADevice * device;
    events.push_back(name_of("thread_name", process, thread, fmt::format("device {}", device)));
    if (pool.partition > 0)
      events.push_back(name_of("thread_name", process, thread + 1, fmt::format("to device {}", device)));
  }
}

Json event_of(const ServingSpan& span, int process) {
  const bool is_transfer = span.kind == ServingSpan::Kind::transfer;
  Json event = {{"ph", "X"},
                {"name", fmt::format("{} request{}", span.requests, span.requests == 1 ? "" : "s")},
                {"cat", is_transfer ? "transfer" : "compute"},
                {"pid", process},
                {"tid", thread_of(span)},
                {"ts", 1e-3 * static_cast<double>(span.begin_ns)},
                {"dur", 1e-3 * static_cast<double>(span.end_ns - span.begin_ns)},
                {"args", {{"requests", span.requests}}}};
  if (is_transfer) event["args"]["sender"] = span.sender;
  return event;
}

}  // namespace

std::string serving_chrome_trace(const std::vector<ServingRun>& runs) {
  Json events = Json::array();
  int first_process = 1;
  for (const ServingRun& run : runs) {
    const int num_pools = static_cast<int>(run.pools.size());
    for (int i = 0; i < num_pools; ++i) add_names(run, run.pools[i], first_process + i, events);
    for (const ServingSpan& span : run.timeline)
      for (int i = 0; i < num_pools; ++i)
        if (run.pools[i].pipeline == span.pipeline && run.pools[i].partition == span.partition)
          events.push_back(event_of(span, first_process + i));
    first_process += num_pools;
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace frostpipe
