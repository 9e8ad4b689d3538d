#pragma once
#include "executor/execute.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// How a run on emulated devices is shrunk, and what its links take.
struct RehearsalOptions {
  int shrink = 0;  // 0 = chosen
  bool links = false;
};

/// --device (cpu, cuda, emulated), --emulated-shrink, --emulated-links, --nodes.
void add_rehearsal_options(CLI::App& command, RehearsalOptions& options, TrainOptions& train);

/// Throws UsageError where options contradict each other: data and rules that look at gradients need real compute, and
/// the other way round.
void require_consistent(const RehearsalOptions& options, const TrainOptions& train, bool has_data);

/// Numbers the devices' nodes as `num_nodes` equal groups; 0 leaves them. Where they are not those of the cluster, all
/// are connected by inter_node. Throws UsageError unless the groups are equal.
void form_nodes(Cluster& cluster, int num_nodes);

/// Of a plan's profile. The chosen shrink factor is the smallest power of two with which the tensors of all ranks
/// together stay under 256 MiB; at most the hidden size, so that activations shrink alike. Throws InvalidInput if the
/// profile has no workload, UsageError for a factor beyond the hidden size.
Emulation emulation_of(const RehearsalOptions& options, Profile profile, const TrainingPlan& plan);

}  // namespace frostpipe
