#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/error.h"
#include "base/error_values.h"
#include "serving/plan/limits.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {
namespace {

/// Relative tolerance: throughputs are sums and quotients of other numbers in the file.
constexpr double kRounding = 1e-6;
bool are_equal(double one, double other) {
  return std::abs(one - other) <= kRounding * std::max({1.0, std::abs(one), std::abs(other)});
}

template <class Value>
void require(bool holds, const std::string& place, std::string_view rule, const Value& value) {
  if (!holds) throw InvalidInput(place, rule, fmt::format("{}", value));
}

void require_time(Nanoseconds time_ns, const std::string& place) {
  require(0 <= time_ns && time_ns <= kMaxServingNs, place, fmt::format("must be >= 0 and <= {}", kMaxServingNs),
          time_ns);
}

/// Checks a rate or a price; rejects NaN.
void require_rate(double rate, const std::string& place) {
  require(0 <= rate && rate <= kMaxServingRate, place, fmt::format("must be >= 0 and <= {:g}", kMaxServingRate), rate);
}

void require_name(const std::string& name, std::set<std::string>& names, const std::string& place) {
  if (name.empty()) throw InvalidInput(place + ".name", "must not be empty", "\"\"");
  if (!names.insert(name).second)
    throw InvalidInput(place + ".name", "must be different from those before", in_quotes(name));
}

void require_device_classes(const ServingPlan& plan, std::string_view source) {
  if (plan.device_classes.empty())
    throw InvalidInput(fmt::format("{}: device_classes", source), "must hold at least one class", "[]");
  std::set<std::string> names;
  for (std::size_t i = 0; i < plan.device_classes.size(); ++i) {
    const auto& device_class = plan.device_classes[i];
    const auto place = fmt::format("{}: device_classes[{}]", source, i);
    require_name(device_class.name, names, place);
    require(device_class.count >= 1, place + ".count", "must be >= 1", device_class.count);
    require(device_class.devices_per_server >= 1, place + ".devices_per_server", "must be >= 1",
            device_class.devices_per_server);
    require(device_class.bandwidth_bytes_per_second >= 0, place + ".bandwidth_bytes_per_second", "must be >= 0",
            device_class.bandwidth_bytes_per_second);
    if (device_class.price_per_hour)
      require_rate(*device_class.price_per_hour, place + ".price_per_hour");
    else if (plan.objective == ServingObjective::cost)
      throw InvalidInput(place + ".price_per_hour", "must be given in a plan with the objective cost", "null");
  }
}

/// Checks one partition; `place` is "plan.json: models[0].pipelines[1].partitions[0]".
void require_partition(const ServingPlan& plan, const ServingPipeline& pipeline, std::size_t index,
                       const std::string& place) {
  const ServingPartition& partition = pipeline.partitions[index];
  const int first = index == 0 ? 0 : pipeline.partitions[index - 1].end_block;
  require(partition.first_block == first, place + ".first_block",
          fmt::format("must be {}, where the partition before ends", first), partition.first_block);
  require(partition.end_block > first, place + ".end_block", fmt::format("must be > {}", first), partition.end_block);
  if (std::ranges::find(plan.device_classes, partition.device_class, &DeviceClass::name) == plan.device_classes.end()) {
    std::vector<std::string> names;
    for (const auto& device_class : plan.device_classes) names.push_back(device_class.name);
    throw InvalidInput(place + ".device_class", fmt::format("must be one of device_classes ({})", in_quotes(names)),
                       in_quotes(partition.device_class));
  }
  require(1 <= partition.share && partition.share <= kMaxShare, place + ".share",
          fmt::format("must be >= 1 and <= {}", kMaxShare), partition.share);
  require(partition.num_virtual_devices >= 1, place + ".num_virtual_devices", "must be >= 1",
          partition.num_virtual_devices);
  require(partition.compute_ns.size() == static_cast<std::size_t>(pipeline.batch_size), place + ".compute_ns",
          fmt::format("must have {} entries, one for each batch size up to the planned", pipeline.batch_size),
          fmt::format("{} entries", partition.compute_ns.size()));
  for (std::size_t i = 0; i < partition.compute_ns.size(); ++i)
    require(1 <= partition.compute_ns[i] && partition.compute_ns[i] <= kMaxServingNs,
            fmt::format("{}.compute_ns[{}]", place, i), fmt::format("must be >= 1 and <= {}", kMaxServingNs),
            partition.compute_ns[i]);
  require_time(partition.transfer_ns, place + ".transfer_ns");
  require_time(partition.latency_ns, place + ".latency_ns");
  require(index > 0 || (partition.input_bytes == 0 && partition.transfer_ns == 0 && partition.latency_ns == 0), place,
          "must have no input_bytes, transfer_ns and latency_ns: no partition is before it",
          fmt::format("{}, {} and {}", partition.input_bytes, partition.transfer_ns, partition.latency_ns));
  const double most =
      1e9 * partition.num_virtual_devices * pipeline.batch_size / static_cast<double>(partition.compute_ns.back());
  require(0 < partition.requests_per_second && partition.requests_per_second <= most * (1 + kRounding),
          place + ".requests_per_second", fmt::format("must be > 0 and <= {}, what its virtual devices compute", most),
          partition.requests_per_second);
  require_rate(partition.requests_per_second, place + ".requests_per_second");
}

/// Checks the batch building time against the model's rate, up to a nanosecond or kRounding, whichever is more.
void require_building(const ServingPlan& plan, const ServedModel& model, const ServingPipeline& pipeline,
                      const std::string& place) {
  require_time(pipeline.batch_building_ns, place);
  const Nanoseconds building = batch_building_ns(pipeline.batch_size, model.building_requests_per_second, plan.margins);
  require(are_equal(static_cast<double>(pipeline.batch_building_ns), static_cast<double>(building)), place,
          fmt::format("must be {}, what the margins count for a batch of {} at {} requests/s", building,
                      pipeline.batch_size, model.building_requests_per_second),
          pipeline.batch_building_ns);
}

/// Checks one pipeline; `place` is "plan.json: models[0].pipelines[1]".
void require_pipeline(const ServingPlan& plan, const ServedModel& model, const ServingPipeline& pipeline,
                      const std::string& place) {
  require(1 <= pipeline.batch_size && pipeline.batch_size <= kMaxBatch, place + ".batch_size",
          fmt::format("must be >= 1 and <= {}", kMaxBatch), pipeline.batch_size);
  if (pipeline.partitions.empty()) throw InvalidInput(place + ".partitions", "must hold at least one partition", "[]");
  for (std::size_t i = 0; i < pipeline.partitions.size(); ++i)
    require_partition(plan, pipeline, i, fmt::format("{}.partitions[{}]", place, i));
  require(pipeline.partitions.back().end_block == static_cast<int>(model.blocks.size()), place + ".partitions",
          fmt::format("must end at block {}, the end of the model", model.blocks.size()),
          pipeline.partitions.back().end_block);
  const double slowest =
      std::ranges::min_element(pipeline.partitions, {}, &ServingPartition::requests_per_second)->requests_per_second;
  require(are_equal(pipeline.requests_per_second, slowest), place + ".requests_per_second",
          fmt::format("must be {}, that of its slowest partition", slowest), pipeline.requests_per_second);
  require_building(plan, model, pipeline, place + ".batch_building_ns");
  const Nanoseconds latency = unloaded_latency_ns(pipeline, pipeline.batch_size) + pipeline.batch_building_ns;
  const Nanoseconds budget = latency_budget_ns(model.objective_ns, plan.margins);
  require(latency <= budget, place,
          fmt::format("must answer a batch of {} within {}, the part of the objective that the margins leave",
                      pipeline.batch_size, format_duration(budget)),
          format_duration(latency));
}

void require_shared_prefix(const ServedModel& model, const std::string& place) {
  if (!model.shared_prefix) return;
  const auto& [layers, heads] = *model.shared_prefix;
  const int num_layers = model.blocks.back().end;
  require(1 <= layers && layers < num_layers, place + ".layers",
          fmt::format("must be >= 1 and < {}, the layers of the model", num_layers), layers);
  require(2 <= heads && heads <= kMaxHeads, place + ".heads", fmt::format("must be >= 2 and <= {}", kMaxHeads), heads);
}

void require_model(const ServingPlan& plan, const ServedModel& model, const std::string& place) {
  require(kLeastWeight <= model.weight && model.weight <= kMaxWeight, place + ".weight",
          fmt::format("must be >= {:g} and <= {:g}", kLeastWeight, kMaxWeight), model.weight);
  require(1 <= model.objective_ns && model.objective_ns <= kMaxServingNs, place + ".objective_ns",
          fmt::format("must be >= 1 and <= {}", kMaxServingNs), model.objective_ns);
  require_rate(model.required_requests_per_second, place + ".required_requests_per_second");
  require_rate(model.building_requests_per_second, place + ".building_requests_per_second");
  require(model.tokens >= 1, place + ".tokens", "must be >= 1", model.tokens);
  validate(model.blocks, model.blocks.empty() ? 1 : model.blocks.back().end, place + ".blocks");
  require_shared_prefix(model, place + ".shared_prefix");
  if (model.pipelines.empty()) throw InvalidInput(place + ".pipelines", "must hold at least one pipeline", "[]");
  double sum = 0;
  for (std::size_t i = 0; i < model.pipelines.size(); ++i) {
    require_pipeline(plan, model, model.pipelines[i], fmt::format("{}.pipelines[{}]", place, i));
    sum += model.pipelines[i].requests_per_second;
  }
  require(are_equal(model.requests_per_second, sum), place + ".requests_per_second",
          fmt::format("must be {}, the sum of its pipelines'", sum), model.requests_per_second);
  require(model.required_requests_per_second <= model.requests_per_second * (1 + kRounding),
          place + ".requests_per_second", fmt::format("must be >= {}, as required", model.required_requests_per_second),
          model.requests_per_second);
  require_rate(model.requests_per_second, place + ".requests_per_second");
}

/// Returns the value of the plan under its objective.
double value_of(const ServingPlan& plan) {
  double least = std::numeric_limits<double>::infinity(), price = 0;
  for (const auto& model : plan.models) least = std::min(least, model.requests_per_second / model.weight);
  for (const auto& device_class : plan.device_classes)
    price += static_cast<double>(devices_in_use(plan, device_class.name)) * device_class.price_per_hour.value_or(0);
  return plan.objective == ServingObjective::cost ? price : least;
}

void require_value(const ServingPlan& plan, std::string_view source) {
  const bool is_cost = plan.objective == ServingObjective::cost;
  const auto place = fmt::format("{}: objective_value", source);
  const double value = value_of(plan);
  require_rate(plan.objective_value, place);
  require(are_equal(plan.objective_value, value), place,
          fmt::format("must be {}, {}", value,
                      is_cost ? "the price of the devices in use" : "the least requests per second per weight"),
          plan.objective_value);
  if (!plan.objective_bound) return;
  const auto bound_place = fmt::format("{}: objective_bound", source);
  require_rate(*plan.objective_bound, bound_place);
  const double beyond =
      is_cost ? plan.objective_value - *plan.objective_bound : *plan.objective_bound - plan.objective_value;
  require(beyond >= -kRounding * std::max(1.0, plan.objective_value), bound_place,
          fmt::format("must be {} {}, the objective's value", is_cost ? "<=" : ">=", plan.objective_value),
          *plan.objective_bound);
}

}  // namespace

void validate(const ServingPlan& plan, std::string_view source) {
  require(0 <= plan.margins.objective_fraction && plan.margins.objective_fraction < 1,
          fmt::format("{}: margins.objective_fraction", source), "must be >= 0 and < 1",
          plan.margins.objective_fraction);
  require_rate(plan.margins.batch_building, fmt::format("{}: margins.batch_building", source));
  require_device_classes(plan, source);
  if (plan.models.empty()) throw InvalidInput(fmt::format("{}: models", source), "must hold at least one model", "[]");
  std::set<std::string> names;
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    const auto place = fmt::format("{}: models[{}]", source, i);
    require_name(plan.models[i].name, names, place);
    require_model(plan, plan.models[i], place);
  }
  for (std::size_t i = 0; i < plan.device_classes.size(); ++i) {
    const auto& device_class = plan.device_classes[i];
    const auto used = devices_in_use(plan, device_class.name);
    require(used <= device_class.count, fmt::format("{}: device_classes[{}].count", source, i),
            fmt::format("must be >= {}, the devices that the pools use", used), device_class.count);
  }
  require_value(plan, source);
}

}  // namespace frostpipe
