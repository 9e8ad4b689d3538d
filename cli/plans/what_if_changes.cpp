#include "cli/plans/what_if_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

constexpr double kBytesPerGigabyte = 1e9;
constexpr double kNanosecondsPerMillisecond = 1e6;

// Ranges that hold every link and device that exists, and keep a usual iteration within 64 bits of nanoseconds.
constexpr double kLeastFactor = 1e-3, kMaxFactor = 1e6;
constexpr double kLeastGigabytesPerSecond = 1e-3, kMaxGigabytesPerSecond = 1e6;
constexpr double kMaxLatencyMilliseconds = 1e4;
constexpr double kMaxFailuresPerDay = 1e6;
constexpr double kMaxCheckpointSeconds = 1e6;

/// A change, and its parts, such as "bandwidth=x0.1", "bandwidth", "x0.1".
struct Change {
  std::string text, name, value;
};

/// An amount such as "x0.5" or "10".
struct Amount {
  bool is_factor = false;
  double value = 0;
};

[[noreturn]] void refuse(const Change& change, const std::string& rule) {
  throw UsageError(fmt::format("--set {}: {}", change.text, rule));
}

/// Refuses a change whose amount is outside of a range, which the refusal states with its unit, such as "GB/s".
void require_range(const Change& change, double amount, double least, double most, std::string_view unit) {
  if (amount < least || amount > most) refuse(change, fmt::format("must be from {} to {:.0f} {}", least, most, unit));
}

/// Refuses a factor that is outside of the range for factors.
void require_factor_range(const Change& change, double factor) {
  if (factor < kLeastFactor || factor > kMaxFactor)
    refuse(change, fmt::format("must be a factor from x{} to x{:.0f}", kLeastFactor, kMaxFactor));
}

Change parse_change(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    refuse({.text = text, .name = "", .value = ""}, "must be NAME=VALUE, such as bandwidth=x0.1 or cache=off");
  return {.text = text, .name = text.substr(0, equals), .value = text.substr(equals + 1)};
}

Amount amount_in(const Change& change, std::string_view text) {
  Amount amount{.is_factor = text.starts_with('x')};
  if (amount.is_factor) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(amount.value) || amount.value < 0)
    refuse(change, "must be a number such as 10, or a factor such as x0.5");
  return amount;
}

double factor_in(const Change& change) {
  const Amount amount = amount_in(change, change.value);
  if (!amount.is_factor || amount.value <= 0) refuse(change, "must be a factor such as x0.5");
  require_factor_range(change, amount.value);
  return amount.value;
}

double number_in(const Change& change, std::string_view text) {
  const Amount amount = amount_in(change, text);
  if (amount.is_factor) refuse(change, "must be a number, not a factor");
  return amount.value;
}

bool is_on(const Change& change) {
  if (change.value != "on" && change.value != "off") refuse(change, "must be on or off");
  return change.value == "on";
}

void change_bandwidth(Scenario& scenario, const Change& change) {
  const Amount amount = amount_in(change, change.value);
  if (amount.value <= 0) refuse(change, "must be more than 0");
  if (amount.is_factor) {
    require_factor_range(change, amount.value);
    return scale_bandwidths(scenario.cluster, amount.value);
  }
  require_range(change, amount.value, kLeastGigabytesPerSecond, kMaxGigabytesPerSecond, "GB/s");
  set_bandwidths(scenario.cluster, kBytesPerGigabyte * amount.value);
}

void change_latency(Scenario& scenario, const Change& change) {
  const Amount amount = amount_in(change, change.value);
  if (amount.is_factor) {
    if (amount.value > 0) require_factor_range(change, amount.value);  // x0 removes the latency
    return scale_latencies(scenario.cluster, amount.value);
  }
  require_range(change, amount.value, 0, kMaxLatencyMilliseconds, "ms");
  set_latencies(scenario.cluster, kNanosecondsPerMillisecond * amount.value);
}

void share_link(Scenario& scenario, const Change& change, double nodes, double gigabytes_per_second) {
  if (gigabytes_per_second <= 0 || nodes < 1 || nodes > static_cast<double>(scenario.cluster.devices.size()))
    refuse(change, "must be more than 0 GB/s, of at least one node and at most as many nodes as devices");
  require_range(change, gigabytes_per_second, kLeastGigabytesPerSecond, kMaxGigabytesPerSecond, "GB/s");
  number_nodes(scenario.cluster);
  scenario.cluster.shared_links.push_back(
      {.name = change.name,
       .nodes = static_cast<int>(nodes),
       .bandwidth_bytes_per_second = std::llround(kBytesPerGigabyte * gigabytes_per_second)});
}

void add_card(Scenario& scenario, const Change& change) {
  share_link(scenario, change, 1, number_in(change, change.value));
}

void add_switch(Scenario& scenario, const Change& change) {
  const std::size_t times = change.value.find('x');
  if (times == std::string::npos || times == 0) refuse(change, "must be NODESxGB/s, such as switch=4x50");
  const std::string_view value = change.value;
  const double nodes = number_in(change, value.substr(0, times));
  share_link(scenario, change, nodes, number_in(change, value.substr(times + 1)));
}

void choose_all_reduce(Scenario& scenario, const Change& change) {
  const std::string& value = change.value;
  if (!is_all_reduce(value)) refuse(change, std::string(kAllReduceRule));
  scenario.cluster.communication.all_reduce = value;
}

void change_overlap(Scenario& scenario, const Change& change) {
  scenario.cluster.communication.overlap_gradient_reduction = is_on(change);
}

void change_scatter_gather(Scenario& scenario, const Change& change) {
  scenario.cluster.communication.scatter_gather = is_on(change);
}

void change_compute(Scenario& scenario, const Change& change) {
  const double speed = factor_in(change);
  for (int rank = 0; rank < static_cast<int>(scenario.cluster.devices.size()); ++rank)
    change_speed(scenario, rank, speed);
}

int rank_in(const Scenario& scenario, const Change& change) {
  const std::string_view number = std::string_view(change.name).substr(std::string_view("rank").size());
  const std::size_t num_ranks = scenario.cluster.devices.size();
  std::size_t rank = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (error != std::errc() || end != number.data() + number.size() || rank >= num_ranks)
    refuse(change, fmt::format("must name a rank below {}", num_ranks));
  return static_cast<int>(rank);
}

/// Returns the first of the tensor ranks that compute with this rank, whose device stands for all of them.
int first_tensor_rank(const Scenario& scenario, const Change& change) {
  std::optional<int> first;
  for (const Phase& phase : scenario.plan.phases) {
    const auto place = find_coordinate(phase.layout, rank_in(scenario, change));
    if (!place) continue;
    const int rank = rank_of(phase.layout, place->pipeline_rank, place->replica);
    if (first.value_or(rank) != rank) refuse(change, "needs a plan whose phases have the same tensor ranks");
    first = rank;
  }
  return first.value_or(rank_in(scenario, change));
}

/// A rank that is slower slows the tensor ranks that compute with it; one that is faster waits for them.
void change_rank(Scenario& scenario, const Change& change) {
  const double factor = factor_in(change);
  const auto has_tensor_ranks = [](const Phase& phase) { return phase.layout.tensor_parallel_size > 1; };
  if (factor > 1 && std::ranges::any_of(scenario.plan.phases, has_tensor_ranks))
    refuse(change, "must be at most x1 in a plan with tensor parallelism: a rank waits for its other tensor ranks");
  change_speed(scenario, first_tensor_rank(scenario, change), factor);
}

void change_freezes(Scenario& scenario, const Change& change) { move_freezes(scenario.plan, factor_in(change)); }

void drop_cache(Scenario& scenario, const Change& change) {
  if (change.value != "off") refuse(change, "must be off (to have a cache where the plan has none, plan again)");
  for (Phase& phase : scenario.plan.phases) phase.cache = {};
}

void change_recompute(Scenario& scenario, const Change& change) {
  const Recompute mode = find_recompute(change.value);
  if (change.value != "off" && !mode)
    refuse(change, fmt::format("must be one of off, {}", fmt::join(recompute_words(), ", ")));
  for (Phase& phase : scenario.plan.phases) phase.recompute = mode;
}

void change_jitter(Scenario& scenario, const Change& change) {
  scenario.jitter = number_in(change, change.value);
  if (scenario.jitter > 1) refuse(change, "must be a fraction, at most 1");
}

void change_failures(Scenario& scenario, const Change& change) {
  scenario.failures.per_day = number_in(change, change.value);
  require_range(change, scenario.failures.per_day, 0, kMaxFailuresPerDay, "a day");
}

void change_checkpoint(Scenario& scenario, const Change& change) {
  scenario.failures.checkpoint_seconds = number_in(change, change.value);
  require_range(change, scenario.failures.checkpoint_seconds, 0, kMaxCheckpointSeconds, "seconds");
}

using Apply = void (*)(Scenario&, const Change&);
constexpr std::string_view kAnyRank = "rankN";
constexpr std::pair<std::string_view, Apply> kChanges[] = {{"bandwidth", change_bandwidth},
                                                           {"latency", change_latency},
                                                           {"card", add_card},
                                                           {"switch", add_switch},
                                                           {"all-reduce", choose_all_reduce},
                                                           {"overlap-reduction", change_overlap},
                                                           {"scatter-gather", change_scatter_gather},
                                                           {"compute", change_compute},
                                                           {kAnyRank, change_rank},
                                                           {"freeze", change_freezes},
                                                           {"cache", drop_cache},
                                                           {"recompute", change_recompute},
                                                           {"jitter", change_jitter},
                                                           {"failures", change_failures},
                                                           {"checkpoint", change_checkpoint}};

void apply(Scenario& scenario, const Change& change) {
  const std::string_view key = change.name.starts_with("rank") ? kAnyRank : std::string_view(change.name);
  std::vector<std::string_view> names;
  for (const auto& [name, function] : kChanges) {
    if (name == key) return function(scenario, change);
    names.push_back(name);
  }
  refuse(change, fmt::format("must be one of {}", fmt::join(names, ", ")));
}

/// Refuses a factor beside another change of its name, since their product may leave the range of factors.
void require_alone(const Change& change, const std::vector<Change>& all) {
  const auto of_its_name = std::ranges::count(all, change.name, &Change::name);
  if (change.value.starts_with('x') && of_its_name > 1)
    refuse(change, "must be the only " + change.name + " of its --set");
}

/// Refuses changes of two ranks that compute together: the slower one counts, not the product of both factors.
void require_one_of_tensor_ranks(const Scenario& scenario, const std::vector<Change>& all) {
  std::set<int> changed;
  for (const Change& change : all)
    if (change.name.starts_with("rank") && !changed.insert(first_tensor_rank(scenario, change)).second)
      refuse(change, "must be the only one of its tensor ranks (the slowest counts)");
}

/// Refuses to move freezes of phases that also begin and end where epochs of the cache do.
void require_no_cache(const Scenario& scenario, const std::vector<Change>& all) {
  const auto freeze = std::ranges::find(all, "freeze", &Change::name);
  const bool is_cached = std::ranges::any_of(scenario.plan.phases, [](const Phase& one) { return one.cache.on; });
  if (freeze != all.end() && is_cached)
    refuse(*freeze, "also needs cache=off, since ends of epochs do not move (or use plan --forecast)");
}

}  // namespace

void apply_changes(Scenario& scenario, const std::string& text) {
  std::vector<Change> changes;
  for (const std::string& change : CLI::detail::split(text, ',')) changes.push_back(parse_change(change));
  require_one_of_tensor_ranks(scenario, changes);
  for (const Change& change : changes) {
    const bool counts =
        change.name != "checkpoint" ||
        std::any_of(changes.begin(), changes.end(), [](const Change& one) { return one.name == "failures"; });
    if (!counts) refuse(change, "must be given together with failures, as in failures=2,checkpoint=30");
    require_alone(change, changes);
    apply(scenario, change);
  }
  require_no_cache(scenario, changes);
}

}  // namespace frostpipe
