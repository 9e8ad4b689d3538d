#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "papers/ppipe_data.h"
#include "papers/published_table.h"

namespace frostpipe {

/// The load that a plan can carry; load factor 1 is the throughput of PPipe's plan for that model.
struct PPipeLoad {
  double largest_load_factor = 0;  // 0: it cannot carry even the smallest load factor
  /// Utilisation (busy fraction) of all devices of the weaker class, the second one, at that load.
  double weak_class_utilisation = 0;
};

/// A model on a cluster, served by each of the three plans.
struct PPipeLoads {
  std::string cluster, model;
  PPipeLoad np, dart, ppipe;
};

/// Returns the largest load factor, in steps of 0.05 up to 1, at which 99 % of the requests of 30 s of Poisson arrivals
/// are answered in time, as in PPipe's experiment (its section 7.2) with the reserved data plane. The result is ordered
/// by instance, then by model.
std::vector<PPipeLoads> largest_loads(const std::vector<PPipeInstance>& instances, std::uint64_t seed);

/// Compares the figures of PPipe's paper with simulations of these plans (ppipe_instances): load factors and gains of
/// Figure 6, utilisation of Figure 8, attainment of Figure 7. Simulated figures are means over five seeds.
std::vector<PublishedRow> ppipe_simulated_rows(const std::vector<PPipeInstance>& instances);

}  // namespace frostpipe
