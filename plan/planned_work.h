#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace frostpipe {

/// Throws InvalidInput that names both types if the profile measured frozen layers in another type than the plan's.
void require_planned_frozen_dtype(const TrainingPlan& plan, const Profile& profile, std::string_view profile_source,
                                  std::string_view plan_source);

/// Returns the tokens of the longest sample for which every phase of the plan has memory.
int planned_longest_tokens(const TrainingPlan& plan);

/// Throws InvalidInput that names both lengths if the longest training sample, of `longest_tokens`, exceeds
/// planned_longest_tokens. Does nothing if the plan has no workload.
void require_planned_lengths(const TrainingPlan& plan, int longest_tokens, std::string_view data,
                             std::string_view source);

/// Returns "plan.json: phase 0 has memory for micro-batches of 640 tokens, and this run makes one of 1280: ..." about
/// the first phase whose largest micro-batch, of largest_tokens[phase] tokens, may exceed a rank's memory limit in
/// `cluster`; "" if none may. All of a rank's predicted memory is assumed to grow with the tokens, which is an upper
/// bound. Without a prediction, any rank with a limit may exceed it.
std::string micro_batches_beyond_memory(const TrainingPlan& plan, const Cluster& cluster,
                                        std::span<const std::int64_t> largest_tokens, std::string_view source);

}  // namespace frostpipe
