#include "papers/ppipe_simulation.h"

#include <algorithm>

#include "serving/simulator/arrivals.h"
#include "serving/simulator/simulate_serving.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kWindowNs = 30'000'000'000;
constexpr double kAttainment = 0.99;
constexpr int kStepsPerLoad = 20;
/// Number of seeds per figure: one run of 30 s determines a load factor only to within two steps, and an attainment to
/// within half a percentage point.
constexpr std::uint64_t kSeeds = 5;

/// The paper's figures for its four clusters of 25 + 75 devices.
struct ClusterFigures {
  const char *name, *cluster;
  double gain_over_np, gain_over_dart;  // percent
};
constexpr ClusterFigures kClusters[] = {{"HC1-L", "L4-P4", 64.9, 47.2},
                                        {"HC2-L", "L4-T4", 34.8, 17.3},
                                        {"HC3-L", "V100-P4", 46.7, 34.8},
                                        {"HC4-L", "V100-T4", 45.5, 29.3}};

struct SystemFigures {
  const char* name;
  PPipeLoad PPipeLoads::*loads;
  double load_factor, weak_class_percent;
};
constexpr SystemFigures kSystems[] = {{"NP", &PPipeLoads::np, 0.668, 8.1},
                                      {"DART-r", &PPipeLoads::dart, 0.749, 29.5},
                                      {"PPipe", &PPipeLoads::ppipe, 0.965, 73.6}};

struct AttainmentFigure {
  const char *name, *model;
  double percent;
};
constexpr AttainmentFigure kAttainments[] = {
    {"EfficientNet-B8", "efficientnet-b8_3rdparty_8xb32-aa-advprop_in1k", 99.3},
    {"EncNet", "encnet_r101-d8_4xb2-40k_cityscapes-512x1024", 97.6},
    {"RTMDet", "rtmdet_x_8xb32-300e_coco", 98.4}};

std::vector<Nanoseconds> arrivals_at(double load_factor, const ServedModel& ppipe, std::uint64_t seed) {
  return arrivals_of(ArrivalProcess::poisson, load_factor * ppipe.requests_per_second, kWindowNs, seed);
}

Nanoseconds busy_on(const std::string& device_class, const ServingRun& run) {
  // A virtual device is 1 / share of a device.
  Nanoseconds busy_ns = 0;
  for (const PoolUse& pool : run.pools)
    if (pool.device_class == device_class) busy_ns += pool.busy_ns / pool.share;
  return busy_ns;
}

/// Tries loads from the largest down, since runs with too much load end early.
PPipeLoad largest_load(const ServingPlan& plan, std::size_t model, const ServedModel& ppipe, std::uint64_t seed) {
  for (int step = kStepsPerLoad; step > 0; --step) {
    const double load_factor = static_cast<double>(step) / kStepsPerLoad;
    const std::vector<Nanoseconds> arrivals = arrivals_at(load_factor, ppipe, seed);
    const auto max_drops = static_cast<std::int64_t>((1 - kAttainment) * static_cast<double>(arrivals.size()));
    const ServingRun run = simulate_serving(plan, plan.models[model], arrivals, kWindowNs, {.max_drops = max_drops});
    if (run.requests.size() < arrivals.size() || summarize(run).attainment < kAttainment) continue;
    const DeviceClass& weak = plan.device_classes.back();
    return {.largest_load_factor = load_factor,
            .weak_class_utilisation =
                static_cast<double>(busy_on(weak.name, run)) / (static_cast<double>(kWindowNs) * weak.count)};
  }
  return {};
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Returns the mean of the models' gains (not the gain of the means), in percent.
double mean_gain(const std::vector<PPipeLoads>& loads, PPipeLoad PPipeLoads::*over, const std::string& cluster) {
  std::vector<double> gains;
  for (const PPipeLoads& one : loads) {
    const double base = (one.*over).largest_load_factor;
    if (base > 0 && (cluster.empty() || one.cluster == cluster))
      gains.push_back(100 * (one.ppipe.largest_load_factor / base - 1));
  }
  return mean_of(gains);
}

void add_loads(const std::vector<PPipeLoads>& loads, std::vector<PublishedRow>& rows) {
  for (const SystemFigures& system : kSystems) {
    std::vector<double> factors;
    for (const PPipeLoads& one : loads) factors.push_back((one.*system.loads).largest_load_factor);
    rows.push_back({.group = "all clusters, Poisson",
                    .what = "largest load factor at 99 %",
                    .run = system.name,
                    .measured = system.load_factor,
                    .predicted = mean_of(factors)});
  }
}

void add_gains(const std::vector<PPipeLoads>& loads, std::vector<PublishedRow>& rows) {
  const auto add = [&](const std::string& name, const char* what, PPipeLoad PPipeLoads::*over,
                       const std::string& cluster, double published) {
    rows.push_back({.group = "each cluster, Poisson",
                    .what = what,
                    .run = name,
                    .measured = published,
                    .predicted = mean_gain(loads, over, cluster)});
  };
  for (const ClusterFigures& one : kClusters)
    add(one.name, "PPipe's gain over NP [%]", &PPipeLoads::np, one.cluster, one.gain_over_np);
  add("mean", "PPipe's gain over NP [%]", &PPipeLoads::np, "", 48.0);
  for (const ClusterFigures& one : kClusters)
    add(one.name, "PPipe's gain over DART-r [%]", &PPipeLoads::dart, one.cluster, one.gain_over_dart);
  add("mean", "PPipe's gain over DART-r [%]", &PPipeLoads::dart, "", 32.2);
}

/// A cluster's weak class serves three models at once, each at its own largest load.
void add_utilisation(const std::vector<PPipeLoads>& loads, std::vector<PublishedRow>& rows) {
  constexpr int kModelsOfACluster = 3;
  for (const SystemFigures& system : kSystems) {
    std::vector<double> parts;
    for (const PPipeLoads& one : loads)
      parts.push_back(100 * kModelsOfACluster * (one.*system.loads).weak_class_utilisation);
    rows.push_back({.group = "all clusters, Poisson",
                    .what = "utilisation of the weaker class [%]",
                    .run = system.name,
                    .measured = system.weak_class_percent,
                    .predicted = mean_of(parts),
                    .note = "here at each model's largest load"});
  }
}

void add_attainment(const std::vector<PPipeInstance>& instances, std::vector<PublishedRow>& rows) {
  for (const PPipeInstance& instance : instances) {
    if (instance.cluster != kClusters[0].cluster) continue;
    for (const ServedModel& model : instance.ppipe.models) {
      const auto* figure = std::find_if(std::begin(kAttainments), std::end(kAttainments),
                                        [&](const AttainmentFigure& one) { return one.model == model.name; });
      if (figure == std::end(kAttainments)) continue;
      std::vector<double> percents;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const ServingRun run = simulate_serving(instance.ppipe, model, arrivals_at(1, model, seed), kWindowNs);
        percents.push_back(100 * summarize(run).attainment);
      }
      rows.push_back({.group = "HC1-L at load factor 1",
                      .what = "attainment by PPipe [%]",
                      .run = figure->name,
                      .measured = figure->percent,
                      .predicted = mean_of(percents)});
    }
  }
}

}  // namespace

std::vector<PPipeLoads> largest_loads(const std::vector<PPipeInstance>& instances, std::uint64_t seed) {
  std::vector<PPipeLoads> loads;
  for (const PPipeInstance& instance : instances) {
    for (std::size_t model = 0; model < instance.ppipe.models.size(); ++model) {
      const ServedModel& ppipe = instance.ppipe.models[model];
      loads.push_back({.cluster = instance.cluster,
                       .model = ppipe.name,
                       .np = largest_load(instance.np, model, ppipe, seed),
                       .dart = largest_load(instance.dart, model, ppipe, seed),
                       .ppipe = largest_load(instance.ppipe, model, ppipe, seed)});
    }
  }
  return loads;
}

std::vector<PublishedRow> ppipe_simulated_rows(const std::vector<PPipeInstance>& instances) {
  std::vector<PPipeLoads> loads;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<PPipeLoads> of_seed = largest_loads(instances, seed);
    loads.insert(loads.end(), of_seed.begin(), of_seed.end());
  }
  std::vector<PublishedRow> rows;
  add_loads(loads, rows);
  add_gains(loads, rows);
  add_utilisation(loads, rows);
  add_attainment(instances, rows);
  return rows;
}

}  // namespace frostpipe
