#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/summary.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// Returns "2 x 3" for stages x replicas; "2 x 3 x 4" if 4 tensor ranks share the layers of each stage; "3 devices" for
/// an operator plan.
std::string shape_text(const Phase& phase);
std::string shape_text(const PhaseSummary& phase, std::string_view times = " x ");

/// Returns the heading of a column of shape_text().
std::string shape_heading(const std::vector<Phase>& phases);
std::string shape_heading(const std::vector<RunSummary>& runs, std::string_view times = " x ");

/// Returns the stages of every rank of the world, ascending; none for an idle rank.
std::vector<std::vector<int>> stages_of_ranks(const Phase& phase, int world_size);

bool has_several_types(const Cluster& cluster);

/// Returns whether a table must say which stages each rank has: the devices are of several types, or a phase's ranks
/// are not in the order of its stages.
bool names_stages_of_ranks(const std::vector<Phase>& phases, const Cluster& cluster);

/// Returns the stages of each rank, such as "0 / 3 / 1+2 / -"; "-" is an idle rank. Refers to the JSON of simulate if
/// that is long.
std::string stages_per_rank_text(const Phase& phase, int world_size);

/// Returns "device per rank: A100 / A100 / V100 x4\n" if the devices are of several types, else an empty text.
std::string device_line(const Cluster& cluster);

/// Returns the unit that freezes in these runs: "blocks" of Transformers, "layers" of nets.
std::string frozen_unit(const std::vector<RunSummary>& runs);

}  // namespace frostpipe
