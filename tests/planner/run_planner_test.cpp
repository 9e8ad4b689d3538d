// Oracle: every sequence of layouts, with and without the cache, priced here from the simulator, reconfiguration costs
// and the parts of the cache.
#include "planner/run_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "planner/search/best_phase.h"
#include "planner/search/candidate.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

struct RunCase {
  Profile profile;
  Cluster cluster;
  PlanOptions options;
};

RunCase random_run(std::mt19937& random, bool with_cache) {
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  RunCase made;
  const int blocks = 3;
  std::vector<test::SyntheticLayer> layers(2 * blocks + 2);
  for (auto& layer : layers)
    layer = {.forward_ns = 100000 + below(900000),
             .input_gradient_ns = 100000 + below(900000),
             .weight_gradient_ns = 100000 + below(900000),
             .frozen_forward_ns = 50000 + below(500000),
             .update_ns = below(200000),
             .output_activation_bytes = 100 + below(2000),
             .saved_activation_bytes = 100 + below(2000),
             .parameter_count = 100 + below(3000)};
  made.profile = test::synthetic_profile(blocks, layers);
  made.profile.workload = Workload{.name = "w",
                                   .num_samples = 80,
                                   .tokens = test::kSyntheticTokens,
                                   .longest_tokens = test::kSyntheticTokens,
                                   .global_batch_size = 8};
  if (with_cache) made.profile.cache = CacheSpeed{.read = {below(400000), 0}, .write = {below(400000), 0}};
  made.cluster =
      test::free_cluster(1 << below(3), below(3) == 0 ? std::nullopt : std::optional<Bytes>(60000 + below(200000)));
  made.cluster.intra_node.collective = {.latency_ns = below(2000000), .bandwidth_bytes_per_second = 1'000'000'000};
  made.cluster.regroup_ns = below(40) * 1'000'000;
  made.options.global_batch_size = 8;
  made.options.num_steps = 30;
  made.options.steps_per_epoch = with_cache ? 10 : 0;
  made.options.cache.memory_bytes = 1 << 20;
  const int first = 3 + below(8), second = first + 1 + below(10);
  made.options.forecast = std::vector<FreezeEvent>{{first, 1}, {second, 2 + below(2)}};
  return made;
}

/// Searches by recursion over the windows.
class BruteForce {
 public:
  BruteForce(const RunCase& run, std::vector<RunWindow> windows) : run_(run), windows_(std::move(windows)) {
    std::set<std::string> seen;
    const int devices = static_cast<int>(run.cluster.devices.size());
    for (const RunWindow& window : windows_) {
      for (int p = 1; p <= devices; p *= 2) {
        std::vector<CacheUse> uses = {{}};
        if (run.profile.cache && window.first_trainable_layer > 0)
          uses.push_back({.on = true, .found = {{window.first_trainable_layer, 1}}});
        for (const CacheUse& use : uses) {
          const auto found = best_phase({run.profile, run.cluster, run.options}, p, window.first_trainable_layer, use);
          if (const auto* phase = std::get_if<Phase>(&found)) {
            if (!seen.insert(std::to_string(p) + phase->schedule + std::to_string(phase->num_micro_batches) +
                             to_string(phase->partition))
                     .second)
              continue;
            layouts_.push_back(*phase);
          }
        }
      }
    }
  }

  Nanoseconds best() { return best_from(0, nullptr, {}); }
  std::size_t num_layouts() const { return layouts_.size(); }

 private:
  static constexpr Nanoseconds kNone = std::numeric_limits<Nanoseconds>::max() / 2;

  Phase phase_of(const Phase& layout, int window, const CacheUse& use) const {
    Phase phase = layout;
    phase.first_trainable_layer = windows_[window].first_trainable_layer;
    phase.cache = use;
    return phase;
  }

  Nanoseconds iteration_ns(const Phase& phase) {
    std::string key = to_string(phase.partition) + phase.schedule + std::to_string(phase.num_micro_batches) + " " +
                      std::to_string(phase.layout.data_parallel_size) + (phase.cache.on ? "c" : " ") +
                      std::to_string(phase.first_trainable_layer);
    for (const CacheFound& one : phase.cache.found)
      key += " " + std::to_string(one.layer) + ":" + std::to_string(one.fraction);
    const auto [entry, is_new] = times_.try_emplace(std::move(key), kNone);
    if (!is_new) return entry->second;
    const auto memory = memory_of(phase, {.global_batch_size = 8}, run_.profile, run_.cluster);
    if (what_does_not_fit(phase, memory, run_.cluster).empty())
      entry->second = simulated_iteration_ns(phase, {.global_batch_size = 8}, run_.profile, run_.cluster);
    return entry->second;
  }

  Nanoseconds change_ns(const Phase* before, const Phase& after) const {
    return before ? reconfiguration_ns(diff(*before, after, run_.profile.model, Optimizer::kAdamW, DType::kFloat32),
                                       run_.cluster)
                  : 0;
  }

  Nanoseconds best_from(int window, const Phase* before, const CacheContent& content) {
    if (window == static_cast<int>(windows_.size())) return 0;
    const auto [from, end, layer] = windows_[window];
    Nanoseconds best = kNone;
    const auto follows = [](const Phase& phase, const Phase* last) {
      return !last || last->layout.pipeline_parallel_size % phase.layout.pipeline_parallel_size == 0;
    };
    for (const Phase& layout : layouts_) {
      if (!follows(layout, before)) continue;
      const Phase plain = phase_of(layout, window, {});
      const Nanoseconds time = iteration_ns(plain);
      if (time < kNone) {
        const CacheContent after =
            run_.options.steps_per_epoch > 0 ? advanced(content, 0, from, end, run_.options.steps_per_epoch) : content;
        best = std::min(best, (end - from) * time + change_ns(before, plain) + best_from(window + 1, &plain, after));
      }
      if (!run_.profile.cache || layer == 0) continue;
      const auto parts = cache_parts(layer, from, run_.options.num_steps, run_.options.steps_per_epoch, 1.0, content);
      for (const Phase& last : layouts_) {
        if (!follows(last, &layout) || (parts.size() < 2 && last.partition != layout.partition)) continue;
        Nanoseconds cost = 0;
        Phase now = plain;
        const Phase* previous = before;
        Phase kept;
        bool fits = true;
        for (std::size_t i = 0; i < parts.size(); ++i) {
          now = phase_of(i + 1 < parts.size() ? layout : last, window, parts[i].use);
          const Nanoseconds part_time = iteration_ns(now);
          fits = fits && part_time < kNone;
          if (!fits || parts[i].from_step >= end) continue;
          cost += (std::min(parts[i].end_step, end) - parts[i].from_step) * part_time + change_ns(previous, now);
          kept = now;
          previous = &kept;
        }
        if (fits)
          best = std::min(best, cost + best_from(window + 1, previous,
                                                 advanced(content, layer, from, end, run_.options.steps_per_epoch)));
      }
    }
    return best;
  }

  const RunCase& run_;
  std::vector<RunWindow> windows_;
  std::vector<Phase> layouts_;
  std::map<std::string, Nanoseconds> times_;
};

void expect_best_of_all(bool with_cache, int rounds) {
  std::mt19937 random(with_cache ? 21 : 22);
  int planned = 0, changed = 0, cached = 0, data_parallel = 0;
  for (int round = 0; round < rounds; ++round) {
    const RunCase run = random_run(random, with_cache);
    const auto windows = windows_of(run.profile.model, 0, 0, *run.options.forecast, run.options.num_steps);
    BruteForce brute(run, windows);
    RunPlanner planner({run.profile, run.cluster, run.options}, {});
    const auto made = planner.plan(windows, /*only_best=*/true);
    if (std::holds_alternative<Infeasible>(made)) continue;
    if (brute.num_layouts() > 10) continue;  // the planner looks at ten at most
    ++planned;
    const RunPath& path = std::get<std::vector<RunPath>>(made).front();
    EXPECT_EQ(path.predicted_ns, brute.best()) << round;
    const Phase& first = path.phases.front().front();
    const Phase& last = path.phases.back().back();
    changed += first.layout != last.layout;
    cached += last.cache.on;
    data_parallel += first.layout.pipeline_parallel_size == 1;
  }
  EXPECT_GT(planned, rounds / 2);
  EXPECT_GT(changed, 0);
  EXPECT_GT(data_parallel, 0);
  EXPECT_EQ(cached > 0, with_cache);
}

TEST(RunPlanner, IsTheBestOfAllSequencesOfLayouts) { expect_best_of_all(/*with_cache=*/false, 150); }

TEST(RunPlanner, IsTheBestOfAllSequencesWithAndWithoutTheCache) { expect_best_of_all(/*with_cache=*/true, 30); }

/// The second of two devices takes one to four times as long, with a separate factor per layer.
RunCase run_on_unequal_devices(std::mt19937& random) {
  RunCase made = random_run(random, /*with_cache=*/false);
  Cluster two = test::free_cluster(2, std::nullopt);
  two.intra_node.collective = made.cluster.intra_node.collective;
  two.regroup_ns = made.cluster.regroup_ns;
  two.devices[1].type = "slow";
  made.cluster = two;
  Profile& profile = made.profile;
  const std::size_t measured = profile.measurements.size(), updated = profile.updates.size();
  std::map<int, Nanoseconds> times_as_long;
  for (std::size_t i = 0; i < measured; ++i) {
    Measurement slow = profile.measurements[i];
    const auto [factor, is_new] = times_as_long.try_emplace(slow.key.layer, 1 + random() % 4);
    slow.key.device_type = "slow";
    for (Nanoseconds* part : {&slow.cost.forward_ns, &slow.cost.input_gradient_ns, &slow.cost.weight_gradient_ns,
                              &slow.cost.frozen_forward_ns})
      *part *= factor->second;
    profile.measurements.push_back(slow);
  }
  for (std::size_t i = 0; i < updated; ++i) {
    profile.updates.push_back(profile.updates[i]);
    profile.updates.back().device_type = "slow";
  }
  std::ranges::sort(profile.measurements, {}, &Measurement::key);
  return made;
}

// Oracle: the same devices in reverse order, which gives the same two orders of a pipeline. The candidates have only
// one layout for each window and length, so occasionally the change to it costs more; the tolerance of one per cent
// allows for that.
TEST(RunPlanner, UnequalDevicesMayBeListedInAnyOrder) {
  std::mt19937 random(23);
  int placed = 0, equal = 0;
  for (int round = 0; round < 100; ++round) {
    RunCase run = run_on_unequal_devices(random);
    const auto windows = windows_of(run.profile.model, 0, 0, *run.options.forecast, run.options.num_steps);
    const auto best = [&] {
      RunPlanner planner({run.profile, run.cluster, run.options}, {});
      return std::get<std::vector<RunPath>>(planner.plan(windows, /*only_best=*/true)).front();
    };
    const RunPath one = best();
    std::swap(run.cluster.devices[0], run.cluster.devices[1]);
    const RunPath other = best();
    equal += one.predicted_ns == other.predicted_ns;
    EXPECT_NEAR(1.0 * one.predicted_ns / other.predicted_ns, 1, 0.01) << round;
    for (const auto& phases : one.phases) placed += !phases.front().layout.placement.empty();
  }
  EXPECT_GE(equal, 95);
  EXPECT_GT(placed, 0);
}

TEST(RunWindows, LeaveOutWhatFreezesNothing) {
  const Model model = test::synthetic_model(3);
  const auto windows = windows_of(model, 10, 3, {{5, 2}, {12, 1}, {20, 2}, {20, 3}, {40, 3}}, 40);
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0].end_step, 20);
  EXPECT_EQ(windows[1].from_step, 20);
  EXPECT_EQ(windows[1].first_trainable_layer, first_trainable_layer(model, 3));
}

}  // namespace
}  // namespace frostpipe
