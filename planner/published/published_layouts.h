#pragma once
#include <optional>
#include <set>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Distributes blocks evenly over stages, one more on the first stages if they do not divide; the embedding is on the
/// first stage and the head on the last, as PipeDream-2BW and Megatron partition a Transformer. Returns Infeasible if
/// there are fewer blocks than stages.
std::variant<Partition, Infeasible> equal_split(const Model& model, int num_stages);

/// The tensor- and the pipeline-parallel size; the remaining factor of the devices is the number of replicas.
struct MegatronSizes {
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  bool operator==(const MegatronSizes&) const = default;
};

/// The inputs of Megatron's rule.
struct MegatronNeeds {
  double state_bytes = 0;  // weights, gradients and optimizer state of the whole model
  int blocks = 1;
  int devices = 1;
  int devices_per_node = 1;
  double memory_bytes = 0;  // of a device
  std::set<int> tensor_parallel_sizes;
};

/// Megatron's rule (Narayanan et al. 2021, takeaways 1 and 2) in numbers: returns the smallest t x p with which a
/// device's weights, gradients and optimizer state take at most `share` of its memory (the rest is for activations). p
/// exceeds 1 only if t is the largest of the sizes that a node has devices for; p must divide the blocks, and t x p the
/// devices. Returns none if there is no such pair. With 18 bytes a parameter, devices of 80 GB and any share from 0.56
/// to 0.70 it gives all (t, p) of the paper's Table 1.
std::optional<MegatronSizes> megatron_sizes(const MegatronNeeds& needs, double share = 0.6);

/// The method equal-split returns, over all pipeline lengths that divide the devices, the phase with the best schedule
/// and number of micro-batches by simulation.
std::variant<Phase, Infeasible> equal_split_phase(const PlanningProblem& problem);

/// The method ptd-p takes megatron_sizes, the equal split and 1F1B, and recomputes all layers unless options say
/// otherwise. Among the micro-batch sizes b that divide b' = batch / d and fit, it takes the one with the least (b' / b
/// + p - 1) (t_f(b) + t_b(b)) of the slowest stage (equation 1 of the paper).
std::variant<Phase, Infeasible> ptd_p_phase(const PlanningProblem& problem);

/// The method pipedream-2bw searches as its paper does (Narayanan et al. 2021, appendix A): for every depth d that
/// divides the devices, w = devices / d, with and without recomputation (or as options say), it takes the equal split
/// and the largest micro-batch b that fits with two versions of the weights. Its objective is the most samples per
/// second, b w / max over stages of max(compute + messages, reduction of the stage's gradients / m), which has no
/// bubble. The plan's schedule is PipeDream-2BW.
std::variant<Phase, Infeasible> pipedream_2bw_phase(const PlanningProblem& problem);

/// The method terapipe (Li et al. 2021, section 3): for every pipeline length that divides the devices it takes the
/// equal split and, over the numbers of micro-batches, the slices of cut_for_slowest_stage. Among those that fit it
/// takes the least m x (sum of slices) + (p - 1) x (longest slice), and among lengths the fastest by simulation. Unlike
/// in the paper, the micro-batches' numbers of samples differ by at most one. Requires measured slices, and all that
/// require_meaningful demands for TeraPipe.
std::variant<Phase, Infeasible> terapipe_phase(const PlanningProblem& problem);

/// The method pipedream: for every pipeline length that divides the devices it takes pipedream_plan with equally many
/// replicas for all stages (plans allow nothing else), for micro-batches of batch / (d p) samples and the costs and
/// parameters of one tensor rank. Among lengths it takes the least time per sample of the slowest stage. The plan uses
/// 1F1B with the best micro-batches by simulation.
std::variant<Phase, Infeasible> pipedream_phase(const PlanningProblem& problem);

}  // namespace frostpipe
