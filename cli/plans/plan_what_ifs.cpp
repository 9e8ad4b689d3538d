#include "cli/plans/plan_what_ifs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/plans/predict.h"
#include "cli/shared/table.h"
#include "cli/shared/usage_error.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr double kSecondsPerDay = 86'400;
constexpr int kDraws = 200;
constexpr std::uint64_t kSeed = 1;

/// "x0.5" or "10".
struct Amount {
  bool is_factor = false;
  double value = 0;
};

struct Variant {
  std::string label;
  TrainingPlan plan;
  Profile profile;
  Cluster cluster;
  double jitter = 0, failures_per_day = 0, checkpoint_seconds = 60;
};

struct WhatIfRow {
  std::string label;
  double total_seconds = 0, samples_per_second = 0;
  Bytes peak_memory_bytes = 0;
  std::string note;
};

[[noreturn]] void refuse_change(const std::string& change, const std::string& rule) {
  throw UsageError(fmt::format("--set {}: {}", change, rule));
}

Amount amount_in(const std::string& change, std::string_view text) {
  Amount amount{.is_factor = text.starts_with('x')};
  if (amount.is_factor) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(amount.value) || amount.value < 0)
    refuse_change(change, "must be a number such as 10, or a factor such as x0.5");
  return amount;
}

double factor_in(const std::string& change, std::string_view text) {
  const Amount amount = amount_in(change, text);
  if (!amount.is_factor || amount.value <= 0) refuse_change(change, "must be a factor such as x0.5");
  return amount.value;
}

double number_in(const std::string& change, std::string_view text) {
  const Amount amount = amount_in(change, text);
  if (amount.is_factor) refuse_change(change, "must be a number, not a factor");
  return amount.value;
}

template <class Edit>
void for_each_link(Cluster& cluster, Edit edit) {
  for (LinkClass* const links : {&cluster.intra_node, &cluster.inter_node})
    for (Link* const link : {&links->point_to_point, &links->collective}) edit(*link);
}

/// The rank gets a device type of its own, `speed` times as fast.
void change_speed(Variant& variant, int rank, double speed) {
  Device& device = variant.cluster.devices.at(rank);
  const std::string was = device.type;
  device.type = fmt::format("{} of rank {}", was, rank);
  const auto scaled = [&](Nanoseconds time) {
    return static_cast<Nanoseconds>(std::llround(static_cast<double>(time) / speed));
  };
  const std::vector<Measurement> measurements = variant.profile.measurements;
  for (Measurement one : measurements) {
    if (one.key.device_type != was) continue;
    one.key.device_type = device.type;
    for (Nanoseconds* const time :
         {&one.cost.forward_ns, &one.cost.input_gradient_ns, &one.cost.weight_gradient_ns, &one.cost.frozen_forward_ns})
      *time = scaled(*time);
    variant.profile.measurements.push_back(one);
  }
  std::sort(variant.profile.measurements.begin(), variant.profile.measurements.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  const std::vector<UpdateMeasurement> updates = variant.profile.updates;
  for (UpdateMeasurement one : updates) {
    if (one.device_type != was) continue;
    one.device_type = device.type;
    one.update_ns = scaled(one.update_ns);
    variant.profile.updates.push_back(one);
  }
}

/// Phases move; those that would begin after the run are left out.
void move_freezes(TrainingPlan& plan, double factor) {
  std::vector<Phase> phases;
  for (Phase phase : plan.phases) {
    const double step = std::round(phase.from_step * factor);
    if (step >= plan.num_steps) continue;
    phase.from_step = static_cast<int>(step);
    if (!phases.empty() && phases.back().from_step >= phase.from_step) phases.pop_back();
    phases.push_back(std::move(phase));
  }
  plan.phases = std::move(phases);
}

void apply(Variant& variant, const std::string& change) {
  const std::size_t equals = change.find('=');
  if (equals == std::string::npos) refuse_change(change, "must be NAME=VALUE, such as bandwidth=x0.1 or cache=off");
  const std::string name = change.substr(0, equals), value = change.substr(equals + 1);
  if (name == "bandwidth") {
    const Amount amount = amount_in(change, value);
    if (amount.value <= 0) refuse_change(change, "must be more than 0");
    for_each_link(variant.cluster, [&](Link& link) {
      const double was = static_cast<double>(link.bandwidth_bytes_per_second);
      link.bandwidth_bytes_per_second =
          std::max<std::int64_t>(amount.is_factor && was == 0 ? 0 : 1,
                                 std::llround(amount.is_factor ? was * amount.value : 1e9 * amount.value));
    });
  } else if (name == "latency") {
    const Amount amount = amount_in(change, value);
    for_each_link(variant.cluster, [&](Link& link) {
      link.latency_ns =
          std::llround(amount.is_factor ? static_cast<double>(link.latency_ns) * amount.value : 1e6 * amount.value);
    });
  } else if (name == "compute") {
    const double speed = factor_in(change, value);
    for (int rank = 0; rank < static_cast<int>(variant.cluster.devices.size()); ++rank)
      change_speed(variant, rank, speed);
  } else if (name.starts_with("rank")) {
    int rank = -1;
    const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), rank);
    if (error != std::errc() || end != name.data() + name.size() || rank < 0 ||
        rank >= static_cast<int>(variant.cluster.devices.size()))
      refuse_change(change, fmt::format("must name a rank below {}", variant.cluster.devices.size()));
    change_speed(variant, rank, factor_in(change, value));
  } else if (name == "freeze") {
    move_freezes(variant.plan, factor_in(change, value));
  } else if (name == "cache") {
    if (value != "off") refuse_change(change, "must be off (to have a cache where the plan has none, plan again)");
    for (Phase& phase : variant.plan.phases) phase.cache = {};
  } else if (name == "card" || name == "switch") {
    // card=12.5: GB/s of a node's network card; switch=4x50: GB/s of the uplink that 4 nodes share
    const std::size_t times = value.find('x');
    const bool is_switch = name == "switch";
    if (is_switch && (times == std::string::npos || times == 0))
      refuse_change(change, "must be NODESxGB/s, such as switch=4x50");
    const double nodes = is_switch ? number_in(change, value.substr(0, times)) : 1;
    const double bandwidth = number_in(change, is_switch ? value.substr(times + 1) : value);
    if (bandwidth <= 0 || nodes < 1 || nodes > static_cast<double>(variant.cluster.devices.size()))
      refuse_change(change, "must be more than 0, of at least one node");
    variant.cluster.shared_links.push_back(
        {.name = name, .nodes = static_cast<int>(nodes), .bandwidth_bytes_per_second = std::llround(1e9 * bandwidth)});
  } else if (name == "all-reduce") {
    if (value != "ring" && value != "tree" && value != "hierarchical" && value != "fastest")
      refuse_change(change, "must be ring, tree, hierarchical or fastest");
    variant.cluster.communication.all_reduce = value;
  } else if (name == "overlap-reduction" || name == "scatter-gather") {
    if (value != "on" && value != "off") refuse_change(change, "must be on or off");
    (name == "overlap-reduction" ? variant.cluster.communication.overlap_gradient_reduction
                                 : variant.cluster.communication.scatter_gather) = value == "on";
  } else if (name == "recompute") {
    if (value != "off" && !find_recompute(value))
      refuse_change(change, fmt::format("must be one of off, {}", fmt::join(recompute_words(), ", ")));
    for (Phase& phase : variant.plan.phases) phase.recompute = find_recompute(value);
  } else if (name == "jitter") {
    variant.jitter = number_in(change, value);
    if (variant.jitter > 1) refuse_change(change, "must be a fraction, at most 1");
  } else if (name == "failures") {
    variant.failures_per_day = number_in(change, value);
  } else if (name == "checkpoint") {
    variant.checkpoint_seconds = number_in(change, value);
  } else {
    refuse_change(change,
                  "must be one of bandwidth, latency, card, switch, all-reduce, overlap-reduction, scatter-gather, "
                  "compute, rankN, freeze, cache, recompute, jitter, failures, checkpoint");
  }
}

/// Compute times that vary from run to run.
class JitteredCostModel final : public CostModel {
 public:
  JitteredCostModel(const CostModel& costs, double deviation, std::uint64_t seed)
      : costs_(costs), normal_(1, deviation), random_(seed) {}
  std::vector<Segment> segments(const Action& action, int position, int replica) const override {
    return costs_.segments(action, position, replica);
  }
  Nanoseconds compute_ns(const Action& action, int position, int replica) const override {
    const double factor = std::max(0.1, normal_(random_));
    return static_cast<Nanoseconds>(
        std::llround(factor * static_cast<double>(costs_.compute_ns(action, position, replica))));
  }
  TransferCost transfer(const Action& send, int replica) const override { return costs_.transfer(send, replica); }
  std::vector<SharedOccupancy> shared_occupancies(const Action& send, int replica) const override {
    return costs_.shared_occupancies(send, replica);
  }
  bool shares_links() const override { return costs_.shares_links(); }

 private:
  const CostModel& costs_;
  mutable std::normal_distribution<double> normal_;
  mutable std::mt19937_64 random_;
};

/// Replaces each phase's iteration time by the mean of many draws; the note has the spread of the longest phase.
std::string jitter(Variant& variant) {
  std::string note;
  int longest = -1;
  for (std::size_t i = 0; i < variant.plan.phases.size(); ++i) {
    Phase& phase = variant.plan.phases[i];
    const TrainingPlan& plan = variant.plan;
    std::vector<Nanoseconds> draws;
    for (int draw = 0; draw < kDraws; ++draw) {
      draws.push_back(
          iteration_ns_with(phase, step_settings(plan), variant.profile, variant.cluster, [&](const CostModel& costs) {
            return std::make_unique<JitteredCostModel>(costs, variant.jitter, kSeed * kDraws + draw);
          }));
    }
    std::sort(draws.begin(), draws.end());
    double sum = 0;
    for (const Nanoseconds draw : draws) sum += static_cast<double>(draw);
    phase.predicted.iteration_ns = static_cast<Nanoseconds>(sum / kDraws);
    const int steps = (i + 1 < plan.phases.size() ? plan.phases[i + 1].from_step : plan.num_steps) - phase.from_step;
    if (steps <= longest) continue;
    longest = steps;
    const auto at = [&](double share) {
      return in_milliseconds(draws[static_cast<std::size_t>(share * (kDraws - 1))]);
    };
    note = fmt::format("iteration from step {}: 5 % {}, median {}, 95 % {} ms", phase.from_step, at(0.05), at(0.5),
                       at(0.95));
  }
  return note;
}

WhatIfRow evaluate(Variant& variant) {
  WhatIfRow row{.label = variant.label};
  const std::vector<PredictedPhase> phases = predict_phases(variant.plan, variant.profile, variant.cluster);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    variant.plan.phases[i].predicted = {.iteration_ns = phases[i].simulated.summary.iteration_ns,
                                        .transformation_ns = phases[i].transformation_ns,
                                        .peak_memory_bytes = phases[i].peak_memory_bytes};
    for (const Bytes bytes : phases[i].peak_memory_bytes)
      row.peak_memory_bytes = std::max(row.peak_memory_bytes, bytes);
  }
  if (variant.jitter > 0) row.note = jitter(variant);
  row.total_seconds = 1e-9 * static_cast<double>(predicted_run_ns(variant.plan));
  if (variant.failures_per_day > 0) {
    // Daly 2006: expected time with a checkpoint of c seconds every t, a restart of c, failures at a constant rate; t =
    // sqrt(2 c / rate) (Young 1974).
    const double rate = variant.failures_per_day / kSecondsPerDay, c = variant.checkpoint_seconds;
    const double distance = std::min(row.total_seconds, std::max(1e-3, std::sqrt(2 * c / rate)));
    row.total_seconds = std::exp(rate * c) * std::expm1(rate * (distance + c)) / rate * row.total_seconds / distance;
    row.note += fmt::format("{}checkpoint every {:.0f} s", row.note.empty() ? "" : "; ", distance);
  }
  if (row.total_seconds > 0)
    row.samples_per_second = variant.plan.num_steps * variant.plan.global_batch_size / row.total_seconds;
  return row;
}

std::string what_ifs_text(const std::vector<WhatIfRow>& rows) {
  using enum Table::Align;
  Table table({{"what if", left},
               {"training time [s]", right},
               {"x base", right},
               {"samples/s", right},
               {"largest rank [MiB]", right},
               {"note", left}});
  for (const WhatIfRow& row : rows)
    table.add_row({row.label, fmt::format("{:.2f}", row.total_seconds),
                   fmt::format("{:.3f}", row.total_seconds / rows.front().total_seconds),
                   fmt::format("{:.1f}", row.samples_per_second), in_mebibytes(row.peak_memory_bytes), row.note});
  return table.to_string();
}

std::string what_ifs_json(const std::vector<WhatIfRow>& rows) {
  nlohmann::ordered_json json = {
      {"format", "frostpipe.what_ifs"}, {"version", 1}, {"rows", nlohmann::ordered_json::array()}};
  for (const WhatIfRow& row : rows)
    json["rows"].push_back({{"what_if", row.label},
                            {"training_seconds", row.total_seconds},
                            {"times_base", row.total_seconds / rows.front().total_seconds},
                            {"samples_per_second", row.samples_per_second},
                            {"peak_memory_bytes", row.peak_memory_bytes},
                            {"note", row.note}});
  return json.dump(2) + "\n";
}

}  // namespace

std::string simulate_plan_what_ifs(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster,
                                   const std::vector<std::string>& sets, const std::string& format) {
  std::vector<WhatIfRow> rows;
  Variant base{.label = "the plan as it is", .plan = plan, .profile = profile, .cluster = cluster};
  rows.push_back(evaluate(base));
  for (const std::string& set : sets) {
    Variant variant{.label = set, .plan = plan, .profile = profile, .cluster = cluster};
    for (const std::string& change : CLI::detail::split(set, ',')) apply(variant, change);
    rows.push_back(evaluate(variant));
  }
  return format == "json" ? what_ifs_json(rows) : what_ifs_text(rows);
}

}  // namespace frostpipe
