#include "cli/serving/serving_trace.h"

#include <fmt/format.h>

#include "base/chrome_trace.h"

namespace frostpipe {
namespace {

constexpr int kThreadsOfADevice = 2;

void add_names(const ServingRun& run, const PoolUse& pool, int process, Timeline& timeline) {
  const std::string share = pool.share > 1 ? fmt::format("1/{} ", pool.share) : "";
  timeline.add_process(process, fmt::format("{}, pipeline {}, partition {}: {}{}", run.model, pool.pipeline,
                                            pool.partition, share, pool.device_class));
  for (int device = 0; device < pool.num_virtual_devices; ++device) {
    const int thread = kThreadsOfADevice * device;
    timeline.add_thread(process, thread, fmt::format("device {}", device));
    if (pool.partition > 0) timeline.add_thread(process, thread + 1, fmt::format("to device {}", device));
  }
}

TimelineSpan span_of(const ServingSpan& span, int process) {
  const bool is_transfer = span.kind == ServingSpan::Kind::transfer;
  TimelineSpan shown{.name = fmt::format("{} request{}", span.requests, span.requests == 1 ? "" : "s"),
                     .category = is_transfer ? "transfer" : "compute",
                     .process = process,
                     .thread = kThreadsOfADevice * span.virtual_device + (is_transfer ? 1 : 0),
                     .begin_ns = span.begin_ns,
                     .end_ns = span.end_ns,
                     .values = {{"requests", span.requests}}};
  if (is_transfer) shown.values.emplace_back("sender", span.sender);
  return shown;
}

}  // namespace

std::string serving_chrome_trace(const std::vector<ServingRun>& runs) {
  Timeline timeline;
  int first_process = 1;
  for (const ServingRun& run : runs) {
    const int num_pools = static_cast<int>(run.pools.size());
    for (int i = 0; i < num_pools; ++i) add_names(run, run.pools[i], first_process + i, timeline);
    for (const ServingSpan& span : run.timeline)
      for (int i = 0; i < num_pools; ++i)
        if (run.pools[i].pipeline == span.pipeline && run.pools[i].partition == span.partition)
          timeline.spans.push_back(span_of(span, first_process + i));
    first_process += num_pools;
  }
  return to_chrome_trace(timeline);
}

}  // namespace frostpipe
