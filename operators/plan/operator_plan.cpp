#include "operators/plan/operator_plan.h"

#include <algorithm>
#include <cmath>

#include "base/enum_words.h"
#include "base/error.h"
#include "operators/graph/operator_graph_json.h"
#include "plan/plan_envelope.h"
#include "profiles/cluster_json.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorDevice>& device) {
  archive("device_class", device.device_class);
  archive("node", device.node, json::between(0, json::kMaxRanks));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorMachine>& machine) {
  archive("devices", machine.devices);
  archive("within_node", machine.within_node);
  archive("between_nodes", machine.between_nodes);
  archive("shared_ports", machine.shared_ports);
  archive("message_bytes_per_cpu_second", machine.message_bytes_per_cpu_second, json::MayBeMissing{json::at_least(0)});
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorRange>& range) {
  archive("device", range.device, json::at_least(0));
  archive("begin", range.begin, json::at_least(0));
  archive("end", range.end, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorPlan>& plan) {
  archive("method", plan.method);
  archive("frozen_layers", plan.frozen_layers, json::at_least(0));
  archive("machine", plan.machine);
  archive("graph", plan.graph);
  archive("placement", plan.placement);
  archive("order", plan.order, json::at_least(0));
  archive("predicted_ns", plan.predicted_ns, json::kDuration);
  archive("lower_bound_ns", plan.lower_bound_ns, json::kDuration);
  archive("predicted_memory_bytes", plan.predicted_memory_bytes, json::kSize);
  archive("provenance", plan.provenance);
}

namespace {

constexpr EnumWords<OperatorMethod, 5> kMethods{{{OperatorMethod::mtrain, "mtrain"},
                                                 {OperatorMethod::single, "mtrain-single"},
                                                 {OperatorMethod::data_parallel, "mtrain-data-parallel"},
                                                 {OperatorMethod::layer_wise, "mtrain-layer-wise"},
                                                 {OperatorMethod::pipeline, "mtrain-pipeline"}}};

/// The file: first its kind, then the plan.
struct OperatorPlanFile {
  PlanKind kind = PlanKind::operators;
  const OperatorPlan& plan;
};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, OperatorPlanFile>& file) {
  archive("kind", file.kind);
  fields(archive, file.plan);
}

/// Returns the layer's list of holders to which a device with a part of an operator of this kind belongs; null if the
/// operator reads neither weights nor batch norm.
std::vector<int>* holders_by(OperatorKind kind, int layer, std::vector<std::vector<int>>& of_weights,
                             std::vector<std::vector<int>>& of_norm) {
  if (reads_weights(kind)) return &of_weights[layer];
  return reads_norm(kind) ? &of_norm[layer] : nullptr;
}

const ClassCost& time_on(const Operator& one, const std::string& device_class) {
  const auto time = std::ranges::find(one.times, device_class, &ClassCost::device_class);
  FROSTPIPE_CHECK(time != one.times.end(), "require_times has found a time on every device");
  return *time;
}

}  // namespace

Nanoseconds duration_ns(const Operator& one, const std::string& device_class, double share) {
  const ClassCost& time = time_on(one, device_class);
  return time.overhead_ns + static_cast<Nanoseconds>(std::ceil(share * static_cast<double>(time.work_ns)));
}

Bytes own_bytes(const Operator& one, const std::string& device_class, double share) {
  const ClassCost& time = time_on(one, device_class);
  return time.overhead_bytes + static_cast<Bytes>(std::ceil(share * static_cast<double>(time.work_bytes)));
}

const Link& link_between(const OperatorMachine& machine, int from, int to) {
  return machine.devices[from].node == machine.devices[to].node ? machine.within_node : machine.between_nodes;
}

Nanoseconds message_work_ns(const OperatorMachine& machine, Bytes bytes) {
  return transfer_occupancy_ns({.bandwidth_bytes_per_second = machine.message_bytes_per_cpu_second}, bytes);
}

Nanoseconds message_occupancy_ns(const OperatorMachine& machine, int from, int to, Bytes bytes) {
  const Nanoseconds whole = transfer_occupancy_ns(link_between(machine, from, to), bytes);
  return std::max<Nanoseconds>(0, whole - 2 * message_work_ns(machine, bytes));
}

std::vector<std::vector<int>> holders_of(const OperatorGraph& graph, const OperatorPlacement& placement) {
  std::vector<std::vector<int>> of_weights(num_layers(graph)), of_norm(of_weights.size());
  for (std::size_t op = 0; op < graph.operators.size(); ++op) {
    auto* const devices = holders_by(graph.operators[op].kind, graph.operators[op].layer, of_weights, of_norm);
    for (const auto& range : placement[op])
      if (devices) devices->push_back(range.device);
  }
  for (auto* of_layers : {&of_weights, &of_norm})
    for (auto& devices : *of_layers) {
      std::ranges::sort(devices);
      devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    }
  std::vector<std::vector<int>> holders(graph.operators.size());
  for (std::size_t op = 0; op < holders.size(); ++op) {
    const Operator& one = graph.operators[op];
    if (!is_split_by_samples(one.kind))
      holders[op] = one.kind == OperatorKind::update ? of_weights[one.layer] : of_norm[one.layer];
  }
  return holders;
}

std::string to_json(const OperatorPlan& plan) {
  return json::write_envelope(kPlanFormat, OperatorPlanFile{.plan = plan}, kOperatorsVersion);
}

OperatorPlan operator_plan_from_json(std::string_view json, std::string_view source) {
  const auto [version, content] = open_plan(json, source, PlanKind::operators);
  OperatorPlan plan;
  json::read(content, json::Place(source, version), plan);
  validate(plan, source);
  return plan;
}

std::string_view to_string(OperatorMethod method) { return word_of(kMethods, method); }
std::optional<OperatorMethod> find_operator_method(std::string_view word) { return value_of(kMethods, word); }
void parse_text(std::string_view text, const std::string& place, OperatorMethod& method) {
  method = parse_word(kMethods, text, place, "must be mtrain or one of its baselines, such as mtrain-data-parallel");
}

}  // namespace frostpipe
