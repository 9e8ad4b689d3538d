#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "papers/ppipe_data.h"
#include "papers/published_table.h"

namespace frostpipe {

/// How much load a plan carries: load factor 1 is the throughput of PPipe's plan for that model.
struct PPipeLoad {
  double largest_load_factor = 0;  // 0: not even the least one
  /// At that load, of all devices of the weaker class (the second one) the part that computes.
  double weak_class_utilisation = 0;
};

/// A model on a cluster, served by each of the three plans.
struct PPipeLoads {
  std::string cluster, model;
  PPipeLoad np, dart, ppipe;
};

/// The largest load factor, in steps of 0.05 up to 1, at which 99 % of the requests of 30 s of Poisson arrivals are
/// answered in time: PPipe's experiment (its section 7.2) with the reserved data plane. In order of instances, models.
std::vector<PPipeLoads> largest_loads(const std::vector<PPipeInstance>& instances, std::uint64_t seed);

/// The figures of PPipe's paper beside the simulator's, by these plans (ppipe_instances): load
/// factors and gains of Figure 6, utilisation of Figure 8, attainment of Figure 7. Means over five seeds.
std::vector<PublishedRow> ppipe_simulated_rows(const std::vector<PPipeInstance>& instances);

}  // namespace frostpipe
