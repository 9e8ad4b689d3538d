#pragma once
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/plan_options.h"
#include "simulator/layer_costs.h"

namespace frostpipe {

/// The time that all micro-batches of a replica take, by layer: all their work, their forwards alone, and their W alone
/// if the schedule splits the backward.
struct WorkByLayer {
  std::vector<Nanoseconds> all, forwards, weights;
};

/// A device type, and how many micro-batches of each size a replica has.
using ReplicaKind = std::pair<std::string, std::map<int, int>>;
using WorkOfKinds = std::map<ReplicaKind, WorkByLayer>;

/// Work by layer. If the replicas of a pipeline rank have unequal devices, it is that of the one that works longest.
struct PhaseWork {
  WorkOfKinds of_kind;
  std::vector<const WorkOfKinds::value_type*> of_rank;  // by pipeline rank; into of_kind
  std::vector<Nanoseconds> least;                       // minimum of all its work over the pipeline ranks
  std::vector<Nanoseconds> forward, backward;  // of trainable layers: the smaller micro-batch, the fastest device
  Bytes least_output = std::numeric_limits<Bytes>::max();  // over all layers
};

/// Returns the work of a phase whose partition is ignored. Throws InvalidInput if a size was not measured.
PhaseWork work_of(const Phase& unpartitioned, const PlanningProblem& problem, LayerCosts& costs);

}  // namespace frostpipe
