#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

// This header is the only place that says which rank a stage is on. A phase of p pipeline ranks with v stages each has
// p v stages, placed by the schedule's StageMap (as schedule_of's pipeline_rank_of_stage). With schedule rows, the rows
// place the stages, any number on a rank.

/// Returns the number of stages, which is the size of a validated phase's partition.
int num_stages(const Phase& phase);
int pipeline_rank_of(const Phase& phase, int stage);
/// Returns the pipeline rank of every stage, with a single look-up of the schedule.
std::vector<int> pipeline_ranks_of_stages(const Phase& phase);
/// Returns the stages of a pipeline rank, ascending.
std::vector<int> stages_on(const Phase& phase, int pipeline_rank);
/// Returns stages_on for every pipeline rank.
std::vector<std::vector<int>> stages_on_each(const Phase& phase);
/// Returns the layer ranges of stages_on, in the same order.
std::vector<LayerRange> layers_on(const Phase& phase, int pipeline_rank);

int rank_of_stage(const Phase& phase, int stage, int replica);
/// Returns the ranks of all replicas, replica 0 first.
std::vector<int> replicas_of_stage(const Phase& phase, int stage);
std::vector<int> replicas_of_layer(const Phase& phase, int layer);

/// Returns the stage of the first trainable layer.
int first_trainable_stage(const Phase& phase);
/// Returns for each pipeline rank whether one of its stages has a trainable layer.
std::vector<bool> trains(const Phase& phase);
/// Returns for each stage whether it is the first of its pipeline rank that trains.
std::vector<bool> are_first_to_train(const Phase& phase);

/// Returns whether the phase has virtual_stages = 1 and no schedule rows, so that stage s is on pipeline rank s.
bool has_one_stage_per_rank(const Phase& phase);
/// Returns whether the phase's schedule has I and W in place of some or all B.
bool splits_backward(const Phase& phase);

/// Returns whether the next stage is on the same rank and consumes every output before another one is produced, as at
/// the turn of a V.
bool hands_on_at_once(const Phase& phase, int stage);
/// Returns hands_on_at_once for every stage.
std::vector<bool> stages_that_hand_on_at_once(const Phase& phase);

/// Returns "1F1B", "Interleaved1F1B, 2 stages per rank", "Seq1F1B, 4 token slices".
std::string schedule_text(const Phase& phase);

}  // namespace frostpipe
