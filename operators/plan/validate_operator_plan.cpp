#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "operators/plan/operator_plan.h"

namespace frostpipe {
namespace {

/// Checks that the ranges of an operator cover the mini-batch, one after the other, each on a device of its own.
void validate_ranges(const OperatorPlan& plan, std::size_t op, const std::string& place) {
  const auto& ranges = plan.placement[op];
  if (!is_split_by_samples(plan.graph.operators[op].kind)) {
    if (!ranges.empty()) throw InvalidInput(place, "must be empty for an update", std::to_string(ranges.size()));
    return;
  }
  int end = 0;
  std::set<int> devices;
  for (const auto& range : ranges) {
    if (range.begin != end || range.end <= range.begin)
      throw InvalidInput(place, "must be ranges of samples, each beginning where the one before ends",
                         fmt::format("[{}, {})", range.begin, range.end));
    if (range.device >= static_cast<int>(plan.machine.devices.size()) || !devices.insert(range.device).second)
      throw InvalidInput(place, "must be on different devices of the machine", std::to_string(range.device));
    end = range.end;
  }
  if (end != plan.graph.batch)
    throw InvalidInput(place, fmt::format("must end with sample {}", plan.graph.batch), std::to_string(end));
}

/// Returns, for each device, the operators of which it has a part, ascending.
std::vector<std::vector<int>> parts_of_devices(const OperatorPlan& plan) {
  std::vector<std::vector<int>> parts(plan.machine.devices.size());
  const auto holders = holders_of(plan.graph, plan.placement);
  for (std::size_t op = 0; op < plan.graph.operators.size(); ++op) {
    for (const auto& range : plan.placement[op]) parts[range.device].push_back(static_cast<int>(op));
    for (const int device : holders[op]) parts[device].push_back(static_cast<int>(op));
  }
  return parts;
}

}  // namespace

void require_times(const OperatorGraph& graph, const OperatorMachine& machine, std::string_view place) {
  for (const auto& device : machine.devices)
    for (const auto& one : graph.operators)
      if (std::ranges::find(one.times, device.device_class, &ClassCost::device_class) == one.times.end())
        throw InvalidInput(place, fmt::format("must have times of every operator on \"{}\"", device.device_class),
                           fmt::format("without one of \"{}\"", one.name));
}

void require_links(const OperatorMachine& machine, std::string_view place) {
  constexpr std::int64_t kLeastBandwidth = 1'000'000;
  for (const std::int64_t bandwidth :
       {machine.within_node.bandwidth_bytes_per_second, machine.between_nodes.bandwidth_bytes_per_second,
        machine.message_bytes_per_cpu_second})
    if (bandwidth > 0 && bandwidth < kLeastBandwidth)
      throw InvalidInput(place, fmt::format("must have bandwidths of 0 (unlimited) or >= {}", kLeastBandwidth),
                         std::to_string(bandwidth));
}

void validate(const OperatorPlan& plan, std::string_view source) {
  const auto place = [&](std::string_view name) { return fmt::format("{}: {}", source, name); };
  if (plan.machine.devices.empty()) throw InvalidInput(place("machine.devices"), "must not be empty", "empty");
  require_links(plan.machine, place("machine"));
  validate(plan.graph, place("graph"));
  require_times(plan.graph, plan.machine, place("graph.operators"));
  const std::size_t num_operators = plan.graph.operators.size(), num_devices = plan.machine.devices.size();
  if (plan.placement.size() != num_operators)
    throw InvalidInput(place("placement"), fmt::format("must have a value for each of the {} operators", num_operators),
                       std::to_string(plan.placement.size()));
  for (std::size_t op = 0; op < num_operators; ++op) validate_ranges(plan, op, place(fmt::format("placement[{}]", op)));
  if (plan.order.size() != num_devices)
    throw InvalidInput(place("order"), fmt::format("must have a value for each of the {} devices", num_devices),
                       std::to_string(plan.order.size()));
  const auto parts = parts_of_devices(plan);
  for (std::size_t device = 0; device < num_devices; ++device) {
    auto sorted = plan.order[device];
    std::ranges::sort(sorted);
    if (sorted != parts[device])
      throw InvalidInput(place(fmt::format("order[{}]", device)),
                         "must list once each operator of which the device has a part",
                         sorted.size() == parts[device].size()
                             ? "a list of others"
                             : fmt::format("a list of {} operators, not {}", sorted.size(), parts[device].size()));
  }
  if (plan.predicted_memory_bytes.size() != num_devices)
    throw InvalidInput(place("predicted_memory_bytes"),
                       fmt::format("must have a value for each of the {} devices", num_devices),
                       std::to_string(plan.predicted_memory_bytes.size()));
  if (plan.lower_bound_ns > plan.predicted_ns)
    throw InvalidInput(place("lower_bound_ns"), "must be <= predicted_ns", std::to_string(plan.lower_bound_ns));
}

}  // namespace frostpipe
