#include "operators/training/operator_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/timeline.h"

namespace frostpipe {

std::string chrome_trace(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& predicted,
                         const std::vector<DeviceTimes>& measured) {
  Timeline timeline;
  Nanoseconds begin_ns = std::numeric_limits<Nanoseconds>::max();
  for (const DeviceTimes& times : measured)
    if (!times.begin_ns.empty()) begin_ns = std::min(begin_ns, times.begin_ns.front());
  for (int device = 0; device < static_cast<int>(measured.size()); ++device) {
    const std::string& device_class = plan.machine.devices[device].device_class;
    const int of_predicted = 2 * device, of_measured = 2 * device + 1;
    timeline.add_process(of_predicted, fmt::format("device {} ({}): predicted", device, device_class));
    timeline.add_process(of_measured, fmt::format("device {} ({}): measured", device, device_class));
    for (std::size_t place = 0; place < measured[device].begin_ns.size(); ++place) {
      const int task = predicted.order[device][place];
      const std::string& name = plan.graph.operators[tasks.tasks[task].op].name;
      timeline.spans.push_back({.name = name,
                                .process = of_predicted,
                                .begin_ns = predicted.task_begin_ns[task],
                                .end_ns = predicted.task_end_ns[task]});
      timeline.spans.push_back({.name = name,
                                .process = of_measured,
                                .begin_ns = measured[device].begin_ns[place] - begin_ns,
                                .end_ns = measured[device].end_ns[place] - begin_ns});
    }
  }
  return to_chrome_trace(timeline);
}

}  // namespace frostpipe
