#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/published/helix_simulation.h"
#include "bench/published/published_suites.h"

namespace frostpipe {
namespace {

struct Outcome {
  std::optional<HelixSimulated> simulated;
  std::string reason;  // of none
};

std::string run_name(const HelixResult& result) {
  return fmt::format("{} {}{}{} {}, section {}", result.cluster, result.sub_cluster,
                     result.sub_cluster.empty() ? "" : " ", result.is_online ? "online" : "offline", result.method,
                     result.section);
}

/// Quantities by the kind of load.
const char* quantity_of(const HelixResult& result) {
  if (result.is_online) return "tokens/s, arrivals";
  const std::optional<HelixLoad> load = load_of(result);
  return load && load->kind == LoadKind::filling ? "tokens/s, as many requests as fit" : "tokens/s, requests in flight";
}

/// 6.7 compares ways to choose paths on Helix's placement.
std::string placement_of(const HelixResult& result) { return result.section == "6.7" ? "helix" : result.method; }

Outcome outcome_of(const HelixData& data, const HelixResult& result) {
  auto cluster = helix_cluster(data, result.cluster, result.model, result.sub_cluster, placement_of(result));
  if (const auto* const reason = std::get_if<std::string>(&cluster)) return {.reason = *reason};
  if (!has_way(std::get<GenerationCluster>(cluster))) return {.reason = "its machines do not hold all layers"};
  const std::optional<HelixLoad> load = load_of(result);
  if (!load) return {.reason = "its load is not recorded"};
  return {.simulated = simulate_helix(data, std::get<GenerationCluster>(cluster), result, *load)};
}

bool is_same_run(const HelixResult& a, const HelixResult& b) {
  return a.section == b.section && a.cluster == b.cluster && a.model == b.model && a.method == b.method &&
         a.is_online == b.is_online;
}

std::string helix_note(const HelixData& data, const HelixResult& measured) {
  if (!measured.sub_cluster.empty() && measured.sub_cluster != "combined") return "";
  for (const HelixResult& one : data.results)
    if (!one.is_measured && is_same_run(one, measured))
      return fmt::format("Helix's simulator: {:.1f} ({:+.1f} %)", one.decode_tokens_per_s,
                         100 * (one.decode_tokens_per_s / measured.decode_tokens_per_s - 1));
  return "";
}

std::string load_note(const HelixSimulated& simulated) {
  return simulated.arrivals_per_s > 0 ? fmt::format("{:.3f} arrivals/s", simulated.arrivals_per_s)
                                      : fmt::format("{:.0f} in flight", simulated.in_flight);
}

class HelixTable {
 public:
  explicit HelixTable(const HelixData& data) : data_(data) {}

  std::vector<PublishedRow> rows() {
    for (std::size_t i = 0; i < data_.results.size(); ++i) {
      const HelixResult& result = data_.results[i];
      if (result.is_measured && result.sub_cluster != "combined") outcomes_[i] = outcome_of(data_, result);
    }
    for (std::size_t i = 0; i < data_.results.size(); ++i) {
      const HelixResult& result = data_.results[i];
      if (!result.is_measured) continue;
      if (result.sub_cluster == "combined") {
        add_combined(result);
      } else {
        add_single(result, outcomes_.at(i));
      }
    }
    return std::move(rows_);
  }

 private:
  void add(const HelixResult& result, const char* what, double measured, double predicted, std::string note) {
    rows_.push_back({.group = result.model,
                     .what = what,
                     .run = run_name(result),
                     .measured = measured,
                     .predicted = predicted,
                     .note = std::move(note)});
  }

  void add_missing(const HelixResult& result, const std::string& reason) {
    add(result, quantity_of(result), result.decode_tokens_per_s, 0, reason);
    rows_.back().counts = false;
  }

  void add_single(const HelixResult& result, const Outcome& outcome) {
    if (!outcome.simulated) return add_missing(result, outcome.reason);
    const HelixSimulated& simulated = *outcome.simulated;
    const std::string helix = helix_note(data_, result);
    add(result, quantity_of(result), result.decode_tokens_per_s, simulated.decode_tokens_per_s,
        helix + (helix.empty() ? "" : "; ") + load_note(simulated));
    if (result.prompt_s) add(result, "prompt, mean [s]", *result.prompt_s, simulated.prompt_s, "");
    if (result.decode_s) add(result, "decode, mean [s]", *result.decode_s, simulated.decode_s, "");
  }

  /// The sum of its parts.
  void add_combined(const HelixResult& result) {
    double sum = 0;
    for (const auto& [index, outcome] : outcomes_) {
      const HelixResult& part = data_.results[index];
      if (!is_same_run(part, result)) continue;
      if (!outcome.simulated) return add_missing(result, "a part of it is left out");
      sum += outcome.simulated->decode_tokens_per_s;
    }
    add(result, "tokens/s, sums of parts", result.decode_tokens_per_s, sum, helix_note(data_, result));
  }

  const HelixData& data_;
  std::map<std::size_t, Outcome> outcomes_;  // by the result's index
  std::vector<PublishedRow> rows_;
};

}  // namespace

PublishedTable helix_table(const std::string& folder) {
  const HelixData data = load_helix_data(folder);
  return {
      .suite = "helix",
      .source = "Helix (ASPLOS 2025): tokens per second and latencies that its artifact measured, and its simulator's",
      .rows = HelixTable(data).rows()};
}

}  // namespace frostpipe
