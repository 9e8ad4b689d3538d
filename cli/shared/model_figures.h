#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Returns the micro-batches of each replica for a cell of a table, "16 x 4": 16 micro-batches of 4 samples; "8 x 2 or
/// 3" if they cannot be equal.
std::string micro_batches_text(const Phase& phase, int global_batch_size);

/// Returns two lines about a plan that has its predictions. The first has the model's parameters and the FLOP of its
/// forward and backward; it is left out if the profile has neither. The second has the micro-batches of the first
/// phase, and if nothing is frozen there, the FLOP per second of a device and their share of its peak (device_flops).
std::string model_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster);

/// Adds "parameter_count", "flops_per_token" and "flops_per_sample" to the JSON of a plan or a simulation, and to each
/// of its phases "micro_batch_size", "flops_per_second_per_device" and "mfu"; figures that are unknown are left out.
void add_model_figures(nlohmann::ordered_json& json, const TrainingPlan& plan, const Profile& profile,
                       const Cluster& cluster);

}  // namespace frostpipe
