#pragma once
#include "executor/execute.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// Options of runs on emulated devices.
struct RehearsalOptions {
  int shrink = 0;  // divisor of tensors and bandwidths; 0 = chosen by emulation_of()
  bool links = false;
};

/// Adds --device (cpu, cuda, emulated), --emulated-shrink, --emulated-links and --nodes.
void add_rehearsal_options(CLI::App& command, RehearsalOptions& options, TrainOptions& train);

/// Throws UsageError if options contradict each other: data, and freeze rules that look at gradients, need a real
/// device; a real device needs data; --emulated-shrink and --emulated-links need --device emulated, and --cuda-graphs
/// needs --device cuda.
void require_consistent(const RehearsalOptions& options, const TrainOptions& train, bool has_data);

/// Divides the devices into `num_nodes` nodes of equal size; 0 leaves the cluster's nodes as they are. If the nodes
/// change, all pairs of nodes are connected by inter_node. Throws UsageError if the devices cannot be divided equally.
void form_nodes(Cluster& cluster, int num_nodes);

/// Returns the emulation of a plan with its profile. The chosen shrink factor is the smallest power of two with which
/// the tensors of all ranks together stay under 256 MiB; at most the hidden size, so that activations shrink alike.
/// Throws InvalidInput if the profile has no workload, UsageError for a factor beyond the hidden size.
Emulation emulation_of(const RehearsalOptions& options, Profile profile, const TrainingPlan& plan);

}  // namespace frostpipe
