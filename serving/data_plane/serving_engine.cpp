#include "serving/data_plane/serving_engine.h"

#include <algorithm>

namespace frostpipe {
namespace {

Pool pool_of(const ServingPlan& plan, const ServingPartition& partition, int use) {
  const int devices_per_server = device_class_of(plan, partition).devices_per_server * partition.share;
  const int num_servers = (partition.num_virtual_devices + devices_per_server - 1) / devices_per_server;
  return {.partition = &partition,
          .use = use,
          .devices_per_server = devices_per_server,
          .device_until = std::vector<Nanoseconds>(partition.num_virtual_devices),
          .uplinks = std::vector<LinkQueue>(num_servers),
          .downlinks = std::vector<LinkQueue>(num_servers)};
}

}  // namespace

ServingEngine::ServingEngine(const ServingPlan& plan, const ServedModel& served, bool with_timeline)
    : model(served), with_timeline_(with_timeline) {
  for (int pipeline = 0; pipeline < static_cast<int>(model.pipelines.size()); ++pipeline) {
    std::vector<Pool>& pools = pipelines.emplace_back();
    for (const ServingPartition& partition : model.pipelines[pipeline].partitions) {
      const int place = static_cast<int>(pools.size());
      pools.push_back(pool_of(plan, partition, static_cast<int>(run.pools.size())));
      run.pools.push_back({.pipeline = pipeline,
                           .partition = place,
                           .device_class = partition.device_class,
                           .share = partition.share,
                           .num_virtual_devices = partition.num_virtual_devices});
    }
  }
}

std::int64_t ServingEngine::arrive(Nanoseconds at_ns) {
  run.requests.push_back({.arrival_ns = at_ns});
  return num_requests() - 1;
}

void ServingEngine::forget_before(std::int64_t number) {
  run.requests.erase(run.requests.begin(), run.requests.begin() + (number - num_forgotten_));
  num_forgotten_ = number;
}

void ServingEngine::drop(std::int64_t number, DropReason reason) {
  request(number).drop = reason;
  request(number).end_ns = queue.now();
  ++num_drops;
  if (observer) observer->dropped(number, reason);
}

void ServingEngine::compute(Pool& pool, int device, int requests, Nanoseconds begin_ns) {
  const Nanoseconds end_ns = begin_ns + pool.compute_ns(requests);
  pool.device_until[device] = end_ns;
  PoolUse& use = run.pools[pool.use];
  use.busy_ns += std::max<Nanoseconds>(0, std::min(end_ns, run.window_ns) - begin_ns);
  ++use.batches;
  use.requests += requests;
  if (!with_timeline_) return;
  run.timeline.push_back({.kind = ServingSpan::Kind::compute,
                          .pipeline = use.pipeline,
                          .partition = use.partition,
                          .virtual_device = device,
                          .requests = requests,
                          .begin_ns = begin_ns,
                          .end_ns = end_ns});
}

void ServingEngine::transfer(Pool& from, int sender, Pool& to, int receiver, int requests, Nanoseconds begin_ns) {
  const Nanoseconds occupancy_ns = to.transfer_ns(requests), end_ns = begin_ns + occupancy_ns;
  from.uplinks[from.server_of(sender)].carry(begin_ns, occupancy_ns);
  to.downlinks[to.server_of(receiver)].carry(begin_ns, occupancy_ns);
  if (!with_timeline_ || begin_ns == end_ns) return;
  const PoolUse& use = run.pools[to.use];
  run.timeline.push_back({.kind = ServingSpan::Kind::transfer,
                          .pipeline = use.pipeline,
                          .partition = use.partition,
                          .virtual_device = receiver,
                          .sender = sender,
                          .requests = requests,
                          .begin_ns = begin_ns,
                          .end_ns = end_ns});
}

}  // namespace frostpipe
