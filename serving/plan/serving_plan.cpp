#include "serving/plan/serving_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/enum_words.h"
#include "base/error.h"
#include "base/json_reader.h"
#include "plan/plan_envelope.h"
#include "profiles/dtype_json.h"
#include "serving/plan/limits.h"

namespace frostpipe {
namespace {

/// Bounds that the reader checks, which also rules out NaN; validate() checks the rest.
constexpr json::Bounds kTime = json::between(0, kMaxServingNs);
constexpr json::Bounds kRate = json::between(0, static_cast<std::int64_t>(kMaxServingRate));

}  // namespace

template <class Archive>
void fields(Archive& archive, json::Value<Archive, DeviceClass>& device_class) {
  archive("name", device_class.name);
  archive("count", device_class.count, json::between(1, json::kMaxRanks));
  archive("devices_per_server", device_class.devices_per_server, json::between(1, json::kMaxRanks));
  archive("bandwidth_bytes_per_second", device_class.bandwidth_bytes_per_second, json::at_least(0));
  archive("price_per_hour", device_class.price_per_hour, kRate);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ServingPartition>& partition) {
  archive("first_block", partition.first_block, json::at_least(0));
  archive("end_block", partition.end_block, json::at_least(0));
  archive("device_class", partition.device_class);
  archive("share", partition.share, json::between(1, kMaxShare));
  archive("num_virtual_devices", partition.num_virtual_devices, json::between(1, json::kMaxRanks * kMaxShare));
  archive("compute_ns", partition.compute_ns, kTime);
  archive("input_bytes", partition.input_bytes, json::kSize);
  archive("transfer_ns", partition.transfer_ns, kTime);
  archive("latency_ns", partition.latency_ns, kTime);
  archive("requests_per_second", partition.requests_per_second, kRate);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ServingPipeline>& pipeline) {
  archive("batch_size", pipeline.batch_size, json::between(1, kMaxBatch));
  archive("partitions", pipeline.partitions);
  archive("batch_building_ns", pipeline.batch_building_ns, kTime);
  archive("requests_per_second", pipeline.requests_per_second, kRate);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, SharedPrefix>& prefix) {
  archive("layers", prefix.layers, json::at_least(1));
  archive("heads", prefix.heads, json::between(2, kMaxHeads));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ServedModel>& model) {
  archive("name", model.name);
  archive("weight", model.weight, kRate);
  archive("objective_ns", model.objective_ns, kTime);
  archive("tokens", model.tokens, json::between(1, json::kMaxTokens));
  archive("required_requests_per_second", model.required_requests_per_second, kRate);
  archive("building_requests_per_second", model.building_requests_per_second, kRate);
  archive("blocks", model.blocks);
  archive("shared_prefix", model.shared_prefix);
  archive("pipelines", model.pipelines);
  archive("requests_per_second", model.requests_per_second, kRate);
  archive("provenance", model.provenance);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ServingMargins>& margins) {
  archive("objective_fraction", margins.objective_fraction, json::between(0, 1));
  archive("batch_building", margins.batch_building, kRate);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ServingPlan>& plan) {
  archive("method", plan.method);
  archive("objective", plan.objective);
  archive("dtype", plan.dtype);
  archive("margins", plan.margins);
  archive("device_classes", plan.device_classes);
  archive("models", plan.models);
  archive("objective_value", plan.objective_value, kRate);
  archive("objective_bound", plan.objective_bound, kRate);
}

namespace {

constexpr EnumWords<ServingMethod, 3> kMethods{{{ServingMethod::ppipe, "ppipe"},
                                                {ServingMethod::ppipe_np, "ppipe-np"},
                                                {ServingMethod::ppipe_dart, "ppipe-dart"}}};
constexpr EnumWords<ServingObjective, 2> kObjectives{
    {{ServingObjective::throughput, "throughput"}, {ServingObjective::cost, "cost"}}};

/// The plan's file: first the kind, then the plan.
struct ServingPlanFile {
  PlanKind kind = PlanKind::serving;
  const ServingPlan& plan;
};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ServingPlanFile>& file) {
  archive("kind", file.kind);
  fields(archive, file.plan);
}

}  // namespace

std::optional<double> optimality_gap(const ServingPlan& plan) {
  if (!plan.objective_bound || plan.objective_value == 0) return std::nullopt;
  return std::abs(*plan.objective_bound - plan.objective_value) / plan.objective_value;
}

bool is_proven_best(const ServingPlan& plan) {
  const auto gap = optimality_gap(plan);
  return gap && *gap < 2e-5;
}

Nanoseconds unloaded_latency_ns(const ServingPipeline& pipeline, int requests) {
  FROSTPIPE_CHECK(1 <= requests && requests <= pipeline.batch_size, "a plan has times up to its batch size");
  Nanoseconds latency = 0;
  for (const auto& partition : pipeline.partitions)
    latency += partition.latency_ns + requests * partition.transfer_ns + partition.compute_ns[requests - 1];
  return latency;
}

Nanoseconds latency_budget_ns(Nanoseconds objective_ns, const ServingMargins& margins) {
  return objective_ns -
         static_cast<Nanoseconds>(std::ceil(static_cast<double>(objective_ns) * margins.objective_fraction));
}

Nanoseconds batch_building_ns(int requests, double requests_per_second, const ServingMargins& margins) {
  if (requests_per_second <= 0) return 0;
  const double building = margins.batch_building * 1e9 * (requests - 1) / requests_per_second;
  return static_cast<Nanoseconds>(std::llround(std::min(building, 2.0 * static_cast<double>(kMaxServingNs))));
}

const DeviceClass& device_class_of(const ServingPlan& plan, const ServingPartition& partition) {
  const auto found = std::ranges::find(plan.device_classes, partition.device_class, &DeviceClass::name);
  FROSTPIPE_CHECK(found != plan.device_classes.end(), "a validated plan's pools are of its classes");
  return *found;
}

std::int64_t devices_in_use(const ServingPlan& plan, std::string_view device_class) {
  std::int64_t parts = 1;  // parts into which a device is divided so that every share is a whole number of them
  for (const auto& model : plan.models)
    for (const auto& pipeline : model.pipelines)
      for (const auto& partition : pipeline.partitions) parts = std::lcm(parts, std::int64_t{partition.share});
  std::int64_t devices = 0;
  for (const auto& model : plan.models) {
    std::map<std::size_t, std::int64_t> parts_at_place;
    for (const auto& pipeline : model.pipelines)
      for (std::size_t place = 0; place < pipeline.partitions.size(); ++place) {
        const auto& partition = pipeline.partitions[place];
        if (partition.device_class == device_class)
          parts_at_place[place] += partition.num_virtual_devices * (parts / partition.share);
      }
    for (const auto& [place, used] : parts_at_place) devices += (used + parts - 1) / parts;
  }
  return devices;
}

std::string to_json(const ServingPlan& plan) {
  const bool has_heads =
      std::ranges::any_of(plan.models, [](const ServedModel& model) { return model.shared_prefix.has_value(); });
  return json::write_envelope(kPlanFormat, ServingPlanFile{.plan = plan},
                              has_heads ? kSharedPrefixVersion : kServingVersion);
}

ServingPlan serving_plan_from_json(std::string_view json, std::string_view source) {
  const auto [version, content] = open_plan(json, source, PlanKind::serving);
  ServingPlan plan;
  json::read(content, json::Place(source, version), plan);
  validate(plan, source);
  return plan;
}

std::string_view to_string(ServingMethod method) { return word_of(kMethods, method); }
std::string_view to_string(ServingObjective objective) { return word_of(kObjectives, objective); }
std::optional<ServingMethod> find_serving_method(std::string_view word) { return value_of(kMethods, word); }

void parse_text(std::string_view text, const std::string& place, ServingMethod& method) {
  method = parse_word(kMethods, text, place, "must be ppipe, ppipe-np or ppipe-dart");
}

void parse_text(std::string_view text, const std::string& place, ServingObjective& objective) {
  objective = parse_word(kObjectives, text, place, "must be throughput or cost");
}

}  // namespace frostpipe
