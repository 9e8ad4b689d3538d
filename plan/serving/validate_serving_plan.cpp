#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "plan/serving/limits.h"
#include "plan/serving/serving_plan.h"
#include "profiles/error.h"
#include "profiles/error_values.h"

namespace frostpipe {
namespace {

/// Throughputs are sums and quotients of others in the file.
constexpr double kRounding = 1e-6;
bool are_equal(double one, double other) {
  return std::abs(one - other) <= kRounding * std::max({1.0, std::abs(one), std::abs(other)});
}

template <class Value>
void require(bool holds, const std::string& place, std::string_view rule, const Value& value) {
  if (!holds) throw InvalidInput(place, rule, fmt::format("{}", value));
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
  }
}

/// Of one partition; `place` is "plan.json: models[0].pipelines[1].partitions[0]".
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
  require(1 <= partition.share && partition.share <= kMostShare, place + ".share",
          fmt::format("must be >= 1 and <= {}", kMostShare), partition.share);
  require(partition.num_virtual_devices >= 1, place + ".num_virtual_devices", "must be >= 1",
          partition.num_virtual_devices);
  require(partition.compute_ns.size() == static_cast<std::size_t>(pipeline.batch_size), place + ".compute_ns",
          fmt::format("must have {} entries, one for each batch size up to the planned", pipeline.batch_size),
          fmt::format("{} entries", partition.compute_ns.size()));
  for (std::size_t i = 0; i < partition.compute_ns.size(); ++i)
    require(partition.compute_ns[i] >= 1, fmt::format("{}.compute_ns[{}]", place, i), "must be >= 1",
            partition.compute_ns[i]);
  require(index > 0 || (partition.input_bytes == 0 && partition.transfer_ns == 0 && partition.latency_ns == 0), place,
          "must have no input_bytes, transfer_ns and latency_ns: no partition is before it",
          fmt::format("{}, {} and {}", partition.input_bytes, partition.transfer_ns, partition.latency_ns));
  const double most =
      1e9 * partition.num_virtual_devices * pipeline.batch_size / static_cast<double>(partition.compute_ns.back());
  require(0 < partition.requests_per_second && partition.requests_per_second <= most * (1 + kRounding),
          place + ".requests_per_second", fmt::format("must be > 0 and <= {}, what its virtual devices compute", most),
          partition.requests_per_second);
}

/// Of one pipeline; `place` is "plan.json: models[0].pipelines[1]".
void require_pipeline(const ServingPlan& plan, const ServedModel& model, const ServingPipeline& pipeline,
                      const std::string& place) {
  require(1 <= pipeline.batch_size && pipeline.batch_size <= kMostBatch, place + ".batch_size",
          fmt::format("must be >= 1 and <= {}", kMostBatch), pipeline.batch_size);
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
  require(pipeline.batch_building_ns >= 0, place + ".batch_building_ns", "must be >= 0", pipeline.batch_building_ns);
  const Nanoseconds latency = unloaded_latency_ns(pipeline, pipeline.batch_size) + pipeline.batch_building_ns;
  const Nanoseconds budget = latency_budget_ns(model.objective_ns, plan.margins);
  require(latency <= budget, place,
          fmt::format("must answer a batch of {} within {}, what the margins leave of the objective",
                      pipeline.batch_size, format_duration(budget)),
          format_duration(latency));
}

void require_model(const ServingPlan& plan, const ServedModel& model, const std::string& place) {
  require(std::isfinite(model.weight) && model.weight > 0, place + ".weight", "must be > 0", model.weight);
  require(model.objective_ns >= 1, place + ".objective_ns", "must be >= 1", model.objective_ns);
  require(model.tokens >= 1, place + ".tokens", "must be >= 1", model.tokens);
  validate(model.blocks, model.blocks.empty() ? 1 : model.blocks.back().end, place + ".blocks");
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
}

}  // namespace

void validate(const ServingPlan& plan, std::string_view source) {
  require(0 <= plan.margins.objective_fraction && plan.margins.objective_fraction < 1,
          fmt::format("{}: margins.objective_fraction", source), "must be >= 0 and < 1",
          plan.margins.objective_fraction);
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
}

}  // namespace frostpipe
