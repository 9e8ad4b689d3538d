#include "cli/shared/model_figures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/shared/report_words.h"
#include "simulator/model_flops.h"

namespace frostpipe {
namespace {

/// Returns "4", or "2 or 3" if micro-batches of the mini-batch differ.
std::string samples_text(const Phase& phase, int global_batch_size) {
  const int parts = phase.layout.data_parallel_size * phase.num_micro_batches, smallest = global_batch_size / parts;
  return global_batch_size % parts == 0 ? std::to_string(smallest) : fmt::format("{} or {}", smallest, smallest + 1);
}

/// Returns "4,385", "334 million", "8.03 billion".
std::string large_number(std::int64_t count) {
  if (count < 1'000'000) return grouped(count);
  const double millions = static_cast<double>(count) / 1e6;
  if (millions < 999.5) return fmt::format("{:.3g} million", millions);
  if (millions < 999.5e3) return fmt::format("{:.3g} billion", millions / 1e3);
  return fmt::format("{:.3g} trillion", millions / 1e6);
}

std::string model_line(const Profile& profile) {
  std::string text;
  if (const std::int64_t count = parameter_count(profile.model); count > 0)
    text = fmt::format("{} parameters", large_number(count));
  if (const std::optional<TrainingFlops> flops = training_flops(profile)) {
    text += text.empty() ? "" : "; ";
    text += "forward and backward take ";
    if (profile.model.vocab_size > 0) text += format_flops(flops->per_token) + " per token, ";
    text += fmt::format("{} per sample of {} token{}", format_flops(flops->per_sample), flops->tokens,
                        flops->tokens == 1 ? "" : "s");
  }
  return text.empty() ? "" : fmt::format("model: {}\n", text);
}

/// Returns "H100", or "the devices" if a phase uses several types.
std::string devices_text(const Phase& phase, const TrainingPlan& plan, const Cluster& cluster) {
  std::set<std::string> types;
  for (int rank = 0; rank < plan.world_size; ++rank)
    if (find_coordinate(phase.layout, rank)) types.insert(cluster.devices.at(rank).type);
  return types.size() == 1 ? *types.begin() : "the devices";
}

}  // namespace

std::string micro_batches_text(const Phase& phase, int global_batch_size) {
  return fmt::format("{} x {}", phase.num_micro_batches, samples_text(phase, global_batch_size));
}

std::string model_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster) {
  const Phase& first = plan.phases.front();
  const std::string samples = samples_text(first, plan.global_batch_size);
  std::string text = fmt::format("{}first phase: {} of {} sample{}{}", model_line(profile),
                                 plural(first.num_micro_batches, "micro-batch"), samples, samples == "1" ? "" : "s",
                                 first.layout.data_parallel_size > 1 ? " per replica" : "");
  if (const std::optional<DeviceFlops> flops = device_flops(first, plan, profile, cluster)) {
    text += fmt::format("; {}/s per device", format_flops(flops->per_second));
    if (flops->utilisation)
      text += fmt::format(", {:.1f} % of the peak of {} in {} (MFU)", 100 * *flops->utilisation,
                          devices_text(first, plan, cluster), to_string(plan.dtype));
  }
  return text + "\n";
}

void add_model_figures(nlohmann::ordered_json& json, const TrainingPlan& plan, const Profile& profile,
                       const Cluster& cluster) {
  if (const std::int64_t count = parameter_count(profile.model); count > 0) json["parameter_count"] = count;
  if (const std::optional<TrainingFlops> flops = training_flops(profile)) {
    json["flops_per_token"] = flops->per_token;
    json["flops_per_sample"] = flops->per_sample;
  }
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    nlohmann::ordered_json& phase = json["phases"][i];
    phase["micro_batch_size"] = micro_batch_size(plan.phases[i], plan.global_batch_size);
    const std::optional<DeviceFlops> flops = device_flops(plan.phases[i], plan, profile, cluster);
    if (!flops) continue;
    phase["flops_per_second_per_device"] = flops->per_second;
    if (flops->utilisation) phase["mfu"] = *flops->utilisation;
  }
}

}  // namespace frostpipe
