#include "cli/serving/serving_plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/files.h"
#include "cli/plans/plan_files.h"
#include "cli/shared/table.h"

namespace frostpipe {
namespace {

std::string rate(double requests_per_second) { return fmt::format("{:.1f}", requests_per_second); }

std::string classes_text(const ServingPlan& plan) {
  std::string text;
  for (const auto& device_class : plan.device_classes)
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", device_class.count, device_class.name);
  return text;
}

/// Says how good the plan is by its bound, such as "none is more than 0.13 % better", or that there is no bound.
std::string proof_text(const ServingPlan& plan) {
  const auto gap = optimality_gap(plan);
  if (!gap) return "a heuristic, without a bound";
  if (is_proven_best(plan)) return "which is proven to be the best to within 0.002 %";
  return fmt::format("none is more than {:.2f} % better", 100 * *gap);
}

std::string objective_text(const ServingPlan& plan) {
  if (plan.objective == ServingObjective::cost)
    return fmt::format("price of the devices in use: {:.2f} per hour, {}\n", plan.objective_value, proof_text(plan));
  return fmt::format("least throughput per weight: {} requests/s, {}\n", rate(plan.objective_value), proof_text(plan));
}

std::string models_text(const ServingPlan& plan) {
  using enum Table::Align;
  Table table({{"model", left},
               {"SLO [ms]", right},
               {"tokens", right},
               {"weight", right},
               {"throughput [requests/s]", right},
               {"per weight", right},
               {"pipelines", right}});
  for (const auto& model : plan.models)
    table.add_row({model.name, in_milliseconds(model.objective_ns), std::to_string(model.tokens),
                   fmt::format("{:g}", model.weight), rate(model.requests_per_second),
                   rate(model.requests_per_second / model.weight), std::to_string(model.pipelines.size())});
  return table.to_string();
}

std::string heads_text(const ServingPlan& plan) {
  std::string text;
  for (const auto& model : plan.models)
    if (const auto& shared = model.shared_prefix)
      text += fmt::format("{}: {} heads answer every request; their first {} of {} layers are computed once\n",
                          model.name, shared->heads, shared->layers, model.blocks.back().end);
  return text;
}

std::string share_text(const ServingPartition& partition) {
  return partition.share == 1
             ? fmt::format("{} {}", partition.num_virtual_devices, partition.device_class)
             : fmt::format("{} x 1/{} {}", partition.num_virtual_devices, partition.share, partition.device_class);
}

std::string pools_text(const ServingPlan& plan) {
  using enum Table::Align;
  Table table({{"model", left},
               {"pipeline", right},
               {"batch", right},
               {"blocks", left},
               {"pool", left},
               {"transfer [ms]", right},
               {"compute [ms]", right},
               {"throughput [requests/s]", right}});
  for (const auto& model : plan.models)
    for (std::size_t i = 0; i < model.pipelines.size(); ++i)
      for (const auto& partition : model.pipelines[i].partitions) {
        const int batch = model.pipelines[i].batch_size;
        const bool is_first = partition.first_block == 0;
        table.add_row({is_first && i == 0 ? model.name : "", is_first ? std::to_string(i) : "",
                       is_first ? std::to_string(batch) : "",
                       fmt::format("[{},{})", partition.first_block, partition.end_block), share_text(partition),
                       is_first ? "-" : in_milliseconds(partition.latency_ns + batch * partition.transfer_ns),
                       in_milliseconds(partition.compute_ns.back()), rate(partition.requests_per_second)});
      }
  return table.to_string();
}

std::string devices_text(const ServingPlan& plan) {
  std::string text = "devices in use:";
  const char* separator = " ";
  for (const auto& device_class : plan.device_classes) {
    text += fmt::format("{}{} of {} {}", separator, devices_in_use(plan, device_class.name), device_class.count,
                        device_class.name);
    separator = ", ";
  }
  return text + "\n";
}

/// Names the slowest pool of a pipeline, and whether its devices or its network card limit it.
std::string binding_text(const ServingPipeline& pipeline) {
  const auto slowest = std::ranges::min_element(pipeline.partitions, {}, &ServingPartition::requests_per_second);
  const double computed =
      1e9 * slowest->num_virtual_devices * pipeline.batch_size / static_cast<double>(slowest->compute_ns.back());
  const bool by_card = slowest->requests_per_second < computed * (1 - 1e-6);
  std::string text =
      fmt::format("{} on blocks [{},{}) bind{} at {} requests/s", share_text(*slowest), slowest->first_block,
                  slowest->end_block, slowest->num_virtual_devices == 1 ? "s" : "", rate(slowest->requests_per_second));
  if (by_card) text += fmt::format(" by the servers' network cards (computing: {})", rate(computed));
  return text;
}

/// Says which model has the objective's value. For the cheapest plan, says what each model must get and what the
/// devices cost.
std::string objective_details_text(const ServingPlan& plan) {
  if (plan.objective == ServingObjective::throughput) {
    const auto per_weight = [](const ServedModel& model) { return model.requests_per_second / model.weight; };
    const auto least = std::ranges::min_element(plan.models, {}, per_weight);
    return fmt::format("  {} has the least throughput per weight\n", least->name);
  }
  std::string text;
  for (const auto& model : plan.models)
    text += fmt::format("  {} gets {} requests/s, of which {} are required\n", model.name,
                        rate(model.requests_per_second), rate(model.required_requests_per_second));
  for (const auto& device_class : plan.device_classes)
    if (const auto used = devices_in_use(plan, device_class.name); used > 0 && device_class.price_per_hour)
      text += fmt::format("  {} {} cost {:.2f} per hour\n", used, device_class.name,
                          static_cast<double>(used) * *device_class.price_per_hour);
  return text;
}

/// Lists what the pools of a class hold, such as "blocks [0,4) of net, blocks [4,10) of net".
std::string held_text(const ServingPlan& plan, const std::string& device_class) {
  std::vector<std::string> held;
  for (const auto& model : plan.models) {
    for (const auto& pipeline : model.pipelines) {
      for (const auto& partition : pipeline.partitions) {
        if (partition.device_class != device_class) continue;
        const auto blocks = fmt::format("blocks [{},{}) of {}", partition.first_block, partition.end_block, model.name);
        if (std::ranges::find(held, blocks) == held.end()) held.push_back(blocks);
      }
    }
  }
  return fmt::format("{}", fmt::join(held, ", "));
}

std::string classes_in_use_text(const ServingPlan& plan, const std::map<std::string, std::string>& why_unused) {
  std::string text;
  for (const auto& device_class : plan.device_classes) {
    const auto used = devices_in_use(plan, device_class.name);
    const auto why = why_unused.find(device_class.name);
    if (used > 0)
      text += fmt::format("  {} of {} {} in use, for {}\n", used, device_class.count, device_class.name,
                          held_text(plan, device_class.name));
    else
      text += fmt::format("  none of {} {} in use{}\n", device_class.count, device_class.name,
                          why == why_unused.end() ? "" : ": " + why->second);
  }
  return text;
}

std::string latency_text(const ServingPlan& plan, const ServedModel& model, const ServingPipeline& pipeline) {
  Nanoseconds compute = 0, transfer = 0;
  for (const auto& partition : pipeline.partitions) {
    compute += partition.compute_ns.back();
    transfer += partition.latency_ns + pipeline.batch_size * partition.transfer_ns;
  }
  return fmt::format("{} compute + {} transfer + {} building of {} that the margin leaves of {}",
                     format_duration(compute), format_duration(transfer), format_duration(pipeline.batch_building_ns),
                     format_duration(latency_budget_ns(model.objective_ns, plan.margins)),
                     format_duration(model.objective_ns));
}

}  // namespace

ServingPlan load_serving_plan(const std::string& path) {
  const std::string json = read_named_file(path);
  require_kind(PlanKind::serving, json, path);
  return serving_plan_from_json(json, path);
}

std::string serving_plan_text(const ServingPlan& plan, const std::string& path) {
  return fmt::format("{}: {} plan for serving {} model{} on {}\n{}{}{}\n{}\n{}", path, to_string(plan.method),
                     plan.models.size(), plan.models.size() == 1 ? "" : "s", classes_text(plan), objective_text(plan),
                     models_text(plan), heads_text(plan), pools_text(plan), devices_text(plan));
}

std::string serving_explanation(const ServingPlan& plan, const std::map<std::string, std::string>& why_unused) {
  std::string text = "what binds\n";
  for (const auto& model : plan.models)
    for (std::size_t i = 0; i < model.pipelines.size(); ++i)
      text += fmt::format("  {}, pipeline {}: {}\n    a batch takes {}\n", model.name, i,
                          binding_text(model.pipelines[i]), latency_text(plan, model, model.pipelines[i]));
  return text + objective_details_text(plan) + classes_in_use_text(plan, why_unused);
}

}  // namespace frostpipe
