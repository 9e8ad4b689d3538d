#pragma once
#include <optional>
#include <set>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Blocks shared out evenly, the first stages one more where they do not divide, the embedding with the first stage and
/// the head with the last: how PipeDream-2BW and Megatron cut a Transformer. Infeasible with fewer blocks than stages.
std::variant<Partition, Infeasible> equal_split(const Model& model, int num_stages);

/// t x p, the rest of the devices replicas.
struct MegatronSizes {
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  bool operator==(const MegatronSizes&) const = default;
};

/// What Megatron's rule looks at.
struct MegatronNeeds {
  double state_bytes = 0;  // weights, gradients and optimizer state of the whole model
  int blocks = 1;
  int devices = 1;
  int devices_per_node = 1;
  double memory_bytes = 0;  // of a device
  std::set<int> tensor_parallel_sizes;
};

/// Megatron's rule (Narayanan et al. 2021, takeaways 1 and 2) in numbers: the smallest t x p for which a device's
/// weights, gradients and optimizer state take at most `share` of its memory (the rest is for activations), p above 1
/// only where t has reached the devices of a node or the largest size, such that p divides the blocks and t x p the
/// devices. None if there is none. With 18 bytes a parameter, devices of 80 GB and any share from 0.56 to 0.70 it gives
/// all (t, p) of the paper's Table 1.
std::optional<MegatronSizes> megatron_sizes(const MegatronNeeds& needs, double share = 0.6);

/// Method equal-split: of all pipeline lengths that divide the devices, the best schedule and micro-batches by the
/// simulator.
std::variant<Phase, Infeasible> equal_split_phase(const PlanningProblem& problem);

/// Method ptd-p: megatron_sizes, equal split, all layers recomputed unless options say otherwise, 1F1B, and the
/// micro-batch size b, a divisor of b' = batch / d, with the least (b' / b + p - 1) (t_f(b) + t_b(b)) of the slowest
/// stage (its equation 1) of those that fit.
std::variant<Phase, Infeasible> ptd_p_phase(const PlanningProblem& problem);

/// Method pipedream-2bw, its search (Narayanan et al. 2021, appendix A): over depths d that divide the devices, w =
/// devices / d, without and with recomputing, the largest micro-batch b that fits with two versions of the weights,
/// equal split; objective: the most samples per second, b w / max over stages of max(compute + messages, reduction of
/// the stage's gradients / m), which has no bubble. The plan's schedule is PipeDream-2BW.
std::variant<Phase, Infeasible> pipedream_2bw_phase(const PlanningProblem& problem);

/// Method terapipe (Li et al. 2021, section 3): for every pipeline length that divides the devices the equal split, and
/// over the numbers of micro-batches cut_for_slowest_stage's slices; of those that fit the one with the least of its
/// objective, m x (sum of slices) + (p - 1) x (longest slice), and of the lengths the fastest by the simulator. Other
/// than in the paper all micro-batches have as many samples, but for one. Needs times of slices, and all that
/// require_meaningful asks of TeraPipe.
std::variant<Phase, Infeasible> terapipe_phase(const PlanningProblem& problem);

/// Method pipedream: for every pipeline length that divides the devices pipedream_plan with as many replicas for all
/// stages, which plans have, at micro-batches of batch / (d p), a layer's costs and parameters being those of one
/// tensor rank; the length with the least time per sample of the slowest stage; 1F1B with the best micro-batches by the
/// simulator.
std::variant<Phase, Infeasible> pipedream_phase(const PlanningProblem& problem);

}  // namespace frostpipe
