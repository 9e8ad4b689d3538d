#include "serving/simulator/simulate_serving.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/enum_words.h"
#include "serving/data_plane/reactive_plane.h"
#include "serving/data_plane/reserved_plane.h"

namespace frostpipe {
namespace {

constexpr EnumWords<DataPlane, 2> kDataPlanes = {
    {{DataPlane::reserved, "reserved"}, {DataPlane::reactive, "reactive"}}};

/// Schedules one arrival at a time, so that the event queue holds only the next one.
template <class Plane>
void run(ServingEngine& engine, std::span<const Nanoseconds> arrivals, std::optional<std::int64_t> max_drops) {
  Plane plane(engine);
  const auto schedule_arrival = [&](std::size_t request) {
    if (request >= arrivals.size() || (max_drops && engine.num_drops > *max_drops)) return;
    engine.queue.schedule(arrivals[request],
                          {.kind = ServingEvent::Kind::arrival, .index = static_cast<std::int64_t>(request)});
  };
  schedule_arrival(0);
  engine.queue.run([&](const ServingEvent& event) {
    if (event.kind == ServingEvent::Kind::arrival) {
      engine.arrive(engine.queue.now());
      plane.handle(event);
      schedule_arrival(static_cast<std::size_t>(event.index) + 1);
    } else {
      plane.handle(event);
    }
  });
}

}  // namespace

ServingRun simulate_serving(const ServingPlan& plan, const ServedModel& model, std::span<const Nanoseconds> arrivals,
                            Nanoseconds window_ns, const ServingSimulationOptions& options) {
  ServingEngine engine(plan, model, options.timeline);
  engine.run.model = model.name;
  engine.run.objective_ns = model.objective_ns;
  engine.run.window_ns = window_ns;
  engine.run.requests.reserve(arrivals.size());
  if (options.data_plane == DataPlane::reserved) {
    run<ReservedPlane>(engine, arrivals, options.max_drops);
  } else {
    run<ReactivePlane>(engine, arrivals, options.max_drops);
  }
  return std::move(engine.run);
}

int most_requests_at_once(const ServingPlan& plan, ServedModel model, Nanoseconds kept_free_ns, int most) {
  model.objective_ns -= kept_free_ns;
  for (; most > 1; --most) {
    const std::vector<Nanoseconds> arrivals(most, 0);
    const ServingRun run = simulate_serving(plan, model, arrivals, 1, {.max_drops = 0});
    if (std::ranges::none_of(run.requests, [](const ServedRequest& request) { return request.drop.has_value(); }))
      break;
  }
  return most;
}

std::string_view to_string(DataPlane data_plane) { return word_of(kDataPlanes, data_plane); }

}  // namespace frostpipe
