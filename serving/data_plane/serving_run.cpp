#include "serving/data_plane/serving_run.h"

#include <algorithm>
#include <numeric>

#include "base/enum_words.h"
#include "base/statistics.h"

namespace frostpipe {
namespace {

constexpr EnumWords<DropReason, kDropReasons.size()> kReasons = {
    {{DropReason::no_device_in_time, "no device in time"},
     {DropReason::batch_not_filled, "batch not filled in time"},
     {DropReason::time_spent_in_queues, "time spent in queues"},
     {DropReason::failed, "failed"}}};

void describe_latencies(const std::vector<Nanoseconds>& latencies_ns, ServingSummary& summary) {
  if (latencies_ns.empty()) return;
  const auto sum = std::accumulate(latencies_ns.begin(), latencies_ns.end(), Nanoseconds{0});
  summary.mean_latency_ns = sum / static_cast<Nanoseconds>(latencies_ns.size());
  summary.median_latency_ns = quantile(latencies_ns, 0.5);
  summary.p90_latency_ns = quantile(latencies_ns, 0.9);
  summary.p99_latency_ns = quantile(latencies_ns, 0.99);
  summary.largest_latency_ns = *std::max_element(latencies_ns.begin(), latencies_ns.end());
}

}  // namespace

ServingSummary summarize(const ServingRun& run) {
  ServingSummary summary{.requests = static_cast<std::int64_t>(run.requests.size())};
  std::vector<Nanoseconds> latencies_ns;
  for (const ServedRequest& request : run.requests) {
    if (request.drop) {
      ++summary.drops[static_cast<std::size_t>(*request.drop)];
      continue;
    }
    latencies_ns.push_back(request.end_ns - request.arrival_ns);
    ++(latencies_ns.back() <= run.objective_ns ? summary.in_time : summary.late);
  }
  const auto window_ns = static_cast<double>(run.window_ns);
  if (summary.requests > 0)
    summary.attainment = static_cast<double>(summary.in_time) / static_cast<double>(summary.requests);
  if (window_ns > 0) summary.goodput_per_second = 1e9 * static_cast<double>(summary.in_time) / window_ns;
  describe_latencies(latencies_ns, summary);
  for (const PoolUse& pool : run.pools) {
    const double could_ns = window_ns * pool.num_virtual_devices;
    summary.utilisation.push_back(could_ns > 0 ? static_cast<double>(pool.busy_ns) / could_ns : 0);
  }
  return summary;
}

std::string_view to_string(DropReason reason) { return word_of(kReasons, reason); }

}  // namespace frostpipe
