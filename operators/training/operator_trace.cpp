#include "operators/training/operator_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

Json named_process(int process, const std::string& name) {
  return {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"tid", 0}, {"args", {{"name", name}}}};
}

Json span_of(const std::string& name, int process, Nanoseconds begin_ns, Nanoseconds end_ns) {
  return {{"ph", "X"},
          {"name", name},
          {"pid", process},
          {"tid", 0},
          {"ts", 1e-3 * static_cast<double>(begin_ns)},
          {"dur", 1e-3 * static_cast<double>(end_ns - begin_ns)}};
}

}  // namespace

std::string chrome_trace(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& predicted,
                         const std::vector<DeviceTimes>& measured) {
  Json events = Json::array();
  Nanoseconds begin_ns = std::numeric_limits<Nanoseconds>::max();
  for (const DeviceTimes& times : measured)
    if (!times.begin_ns.empty()) begin_ns = std::min(begin_ns, times.begin_ns.front());
  for (int device = 0; device < static_cast<int>(measured.size()); ++device) {
    const std::string& device_class = plan.machine.devices[device].device_class;
    const int of_predicted = 2 * device, of_measured = 2 * device + 1;
    events.push_back(named_process(of_predicted, fmt::format("device {} ({}): predicted", device, device_class)));
    events.push_back(named_process(of_measured, fmt::format("device {} ({}): measured", device, device_class)));
    for (std::size_t place = 0; place < measured[device].begin_ns.size(); ++place) {
      const int task = predicted.order[device][place];
      const std::string& name = plan.graph.operators[tasks.tasks[task].op].name;
      events.push_back(span_of(name, of_predicted, predicted.task_begin_ns[task], predicted.task_end_ns[task]));
      events.push_back(span_of(name, of_measured, measured[device].begin_ns[place] - begin_ns,
                               measured[device].end_ns[place] - begin_ns));
    }
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace frostpipe
