#include "serving/data_plane/reactive_plane.h"

#include <algorithm>
#include <utility>

namespace frostpipe {

ReactivePlane::ReactivePlane(ServingEngine& engine) : engine_(engine), routed_(engine.pipelines.size()) {
  for (int pipeline = 0; pipeline < static_cast<int>(engine.pipelines.size()); ++pipeline) {
    first_place_.push_back(static_cast<int>(places_.size()));
    const std::vector<Pool>& pools = engine.pipelines[pipeline];
    for (int partition = 0; partition < static_cast<int>(pools.size()); ++partition) {
      const int num_devices = static_cast<int>(pools[partition].device_until.size());
      const int place = static_cast<int>(places_.size());
      places_.push_back({.pipeline = pipeline,
                         .partition = partition,
                         .queue = static_cast<int>(queues_.size()),
                         .last_receiver = num_devices - 1});
      const int per_queue = partition == 0 ? num_devices : 1;
      for (int device = 0; device < num_devices; device += per_queue)
        queues_.push_back({.place = place, .first_device = device, .num_devices = per_queue});
      for (std::size_t later = partition + 1; later < pools.size(); ++later) {
        const int planned = engine.model.pipelines[pipeline].batch_size;
        places_.back().reserve_ns +=
            pools[later].transfer_ns(planned) + pools[later].partition->latency_ns + pools[later].compute_ns(planned);
      }
    }
  }
}

void ReactivePlane::handle(const ServingEvent& event) {
  switch (event.kind) {
    case ServingEvent::Kind::arrival: {
      const int queue = places_[first_place_[next_pipeline()]].queue;
      queues_[queue].requests.push_back(event.index);
      ++queues_[queue].load;
      return serve(queue);
    }
    case ServingEvent::Kind::timer:
      if (event.round == queues_[event.index].round) serve(event.index);
      return;
    case ServingEvent::Kind::computed:
      return pass_on(event.index);
    case ServingEvent::Kind::received:
      return receive(event.index);
  }
}

int ReactivePlane::next_pipeline() {
  const auto after = [&](int pipeline) {
    return static_cast<double>(routed_[pipeline] + 1) / engine_.model.pipelines[pipeline].requests_per_second;
  };
  int best = 0;
  for (int pipeline = 1; pipeline < static_cast<int>(routed_.size()); ++pipeline) {
    if (after(pipeline) < after(best)) best = pipeline;
  }
  ++routed_[best];
  return best;
}

/// Gives waiting requests to idle devices, in the order in which these became idle, so that their servers take turns.
void ReactivePlane::serve(int index) {
  const Queue& queue = queues_[index];
  ++queues_[index].round;
  const std::vector<Nanoseconds>& until = pool_of(places_[queue.place]).device_until;
  const auto begin = until.begin() + queue.first_device;
  while (true) {
    const auto first = std::min_element(begin, begin + queue.num_devices);
    if (*first > engine_.queue.now()) return;
    if (!begin_batch(index, static_cast<int>(first - until.begin()))) return;
  }
}

/// Returns false if no request waits, or if it is better to wait for more.
bool ReactivePlane::begin_batch(int index, int device) {
  Queue& queue = queues_[index];
  const Place& place = places_[queue.place];
  Pool& pool = pool_of(place);
  const Nanoseconds now_ns = engine_.queue.now();
  const int planned = engine_.model.pipelines[place.pipeline].batch_size;
  while (!queue.requests.empty()) {
    const Nanoseconds latest_end_ns = engine_.deadline_ns(queue.requests.front()) - place.reserve_ns;
    const int waiting = static_cast<int>(queue.requests.size());
    int size = std::min(waiting, planned);
    while (size > 0 && now_ns + pool.compute_ns(size) > latest_end_ns) --size;
    if (size == 0) {
      engine_.drop(queue.requests.front(), DropReason::time_spent_in_queues);
      queue.requests.pop_front();
      --queue.load;
      continue;
    }
    if (size == waiting && size < planned && now_ns + pool.compute_ns(size + 1) <= latest_end_ns) {
      engine_.queue.schedule(latest_end_ns - pool.compute_ns(size + 1) + 1,
                             {.kind = ServingEvent::Kind::timer, .index = index, .round = queue.round});
      return false;
    }
    Batch batch{.place = queue.place, .device = device};
    batch.requests.assign(queue.requests.begin(), queue.requests.begin() + size);
    queue.requests.erase(queue.requests.begin(), queue.requests.begin() + size);
    if (place.partition == 0) {
      for (const int request : batch.requests) engine_.run.requests[request].admitted_ns = now_ns;
    }
    engine_.compute(pool, device, size, now_ns);
    batches_.push_back(std::move(batch));
    engine_.queue.schedule(pool.device_until[device],
                           {.kind = ServingEvent::Kind::computed, .index = static_cast<int>(batches_.size()) - 1});
    return true;
  }
  return false;
}

/// Handles a computed batch: answers it or sends it to the next pool; its device continues.
void ReactivePlane::pass_on(int index) {
  Batch& batch = batches_[index];
  const Place& from = places_[batch.place];
  const int device = batch.device, size = static_cast<int>(batch.requests.size());
  const bool is_last = from.partition + 1 == static_cast<int>(engine_.pipelines[from.pipeline].size());
  const int queue = queue_of(from, device);
  queues_[queue].load -= size;
  if (is_last) {
    for (const int request : batch.requests) engine_.run.requests[request].end_ns = engine_.queue.now();
    batch.requests = {};
  } else {
    Pool& sender = pool_of(from);
    Place& to = places_[++batch.place];
    Pool& receiver = pool_of(to);
    batch.device = receiver_in(to);
    queues_[queue_of(to, batch.device)].load += size;
    const Nanoseconds begin_ns =
        receiver.transfer_ns(size) > 0
            ? std::max({engine_.queue.now(), sender.uplinks[sender.server_of(device)].free_at(),
                        receiver.downlinks[receiver.server_of(batch.device)].free_at()})
            : engine_.queue.now();
    engine_.transfer(sender, device, receiver, batch.device, size, begin_ns);
    engine_.queue.schedule(begin_ns + receiver.transfer_ns(size) + receiver.partition->latency_ns,
                           {.kind = ServingEvent::Kind::received, .index = index});
  }
  serve(queue);
}

void ReactivePlane::receive(int index) {
  Batch& batch = batches_[index];
  const int queue = queue_of(places_[batch.place], batch.device);
  queues_[queue].requests.insert(queues_[queue].requests.end(), batch.requests.begin(), batch.requests.end());
  batch.requests = {};
  serve(queue);
}

int ReactivePlane::receiver_in(Place& place) const {
  const Pool& pool = engine_.pipelines[place.pipeline][place.partition];
  const int num_devices = static_cast<int>(pool.device_until.size());
  const auto key = [&](int device) {
    return std::pair(queues_[queue_of(place, device)].load, pool.downlinks[pool.server_of(device)].free_at());
  };
  int best = (place.last_receiver + 1) % num_devices;
  for (int i = 2; i <= num_devices; ++i) {
    const int device = (place.last_receiver + i) % num_devices;
    if (key(device) < key(best)) best = device;
  }
  return place.last_receiver = best;
}

}  // namespace frostpipe
