#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

// The only place that says which rank a stage is on. A phase of p pipeline ranks with v stages each has p v stages;
// where each is, the schedule's StageMap says (as schedule_of's pipeline_rank_of_stage), or the rows of a phase that
// has them, which may put any number of stages on a rank.

/// The size of a validated phase's partition.
int num_stages(const Phase& phase);
int pipeline_rank_of(const Phase& phase, int stage);
/// Of every stage: one look-up of the schedule for all of them.
std::vector<int> pipeline_ranks_of_stages(const Phase& phase);
/// Ascending.
std::vector<int> stages_on(const Phase& phase, int pipeline_rank);
/// stages_on of every pipeline rank.
std::vector<std::vector<int>> stages_on_each(const Phase& phase);
/// Those of stages_on, in this order.
std::vector<LayerRange> layers_on(const Phase& phase, int pipeline_rank);

int rank_of_stage(const Phase& phase, int stage, int replica);
/// Ranks of all replicas, replica 0 first.
std::vector<int> replicas_of_stage(const Phase& phase, int stage);
std::vector<int> replicas_of_layer(const Phase& phase, int layer);

/// The stage of the first trainable layer.
int first_trainable_stage(const Phase& phase);
/// By pipeline rank: whether a stage of it has a layer that trains.
std::vector<bool> trains(const Phase& phase);
/// By stage: whether it trains, and is the first of its pipeline rank that does.
std::vector<bool> are_first_to_train(const Phase& phase);

/// Stage s on pipeline rank s: a rank's stage has its number.
bool has_one_stage_per_rank(const Phase& phase);
/// Whether its schedule has I and W in place of some B.
bool splits_backward(const Phase& phase);

/// Whether the next stage is on the same rank and takes up every output before there is another, as at the turn of a V.
bool hands_on_at_once(const Phase& phase, int stage);
/// That of every stage.
std::vector<bool> stages_that_hand_on_at_once(const Phase& phase);

/// "1F1B", "Interleaved1F1B, 2 stages per rank", "Seq1F1B, 4 token slices".
std::string schedule_text(const Phase& phase);

}  // namespace frostpipe
