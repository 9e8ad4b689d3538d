#pragma once
#include <span>
#include <vector>

#include "base/units.h"
#include "plan/partition.h"

namespace frostpipe {

/// A layer as PipeDream's planner describes it, for one micro-batch.
struct PipeDreamLayer {
  double compute_ns = 0;        // forward and backward on one device
  double activation_bytes = 0;  // across the cut after it
  double parameter_bytes = 0;
};

/// One level of the machine: the number of parts of the level below that it joins, and the bandwidth between them.
/// Levels are listed from the innermost: {8 GPUs, PCIe}, {4 servers, Ethernet}.
struct PipeDreamLevel {
  enum class Use { any, replicas, stages };
  int parts = 1;
  double bytes_per_second = 0;  // 0 = unlimited
  Use use = Use::any;           // replicas: one stage on all parts; stages: a stage on each part
};

/// A stage and the number of devices (parts of the innermost level) on which it is replicated.
struct PipeDreamStage {
  LayerRange layers;
  int devices = 1;
  bool operator==(const PipeDreamStage&) const = default;
};

struct PipeDreamPlan {
  std::vector<PipeDreamStage> stages;
  double slowest_ns = 0;  // per micro-batch: the objective
};

/// Plans a chain of layers by PipeDream's hierarchical dynamic program (Narayanan et al. 2019, section 3.1). It
/// minimizes the slowest stage's time per micro-batch, where a stage of layers i..j on m parts of level k takes
///   T_k(i..j, m) = max(A_{k-1}(i..j, all its parts), 2 (m - 1) parameter bytes / bandwidth_k) / m
/// (A_0 = compute), a message after layer s takes 2 activation bytes / bandwidth_k, and
///   A_k(i..j, m) = min over one stage T_k(i..j, m) and over s, m' of max(A_k(i..s, m - m'), message after s,
///   T_k(s+1..j, m')).
/// The result is exact for that objective, over all partitions and numbers of replicas at every level; memory is
/// ignored. The search takes O(layers^3 parts^2) time. Throws InvalidInput if there are no layers, no levels, or a
/// level without parts.
PipeDreamPlan pipedream_plan(std::span<const PipeDreamLayer> layers, const std::vector<PipeDreamLevel>& levels);

}  // namespace frostpipe
