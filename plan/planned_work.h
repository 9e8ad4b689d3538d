#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace frostpipe {

/// The value of an option that changes what a step computes: the one that the plan was made for, where it is known;
/// else the one given, else `otherwise`. Throws InvalidInput, "--max-tokens 128: plan.json was made for 16; ...", if
/// one is given that is not the plan's.
int planned_value(std::string_view option, std::optional<int> given, std::optional<int> planned, int otherwise,
                  std::string_view source);

/// Throws InvalidInput that names both types if the profile measured frozen layers in another one than the plan's.
void require_planned_frozen_dtype(const TrainingPlan& plan, const Profile& profile, std::string_view profile_source,
                                  std::string_view plan_source);

/// Tokens of the longest sample that the plan has memory for in every phase.
int planned_longest_tokens(const TrainingPlan& plan);

/// Throws InvalidInput that names both lengths if the longest sample to train on, of `longest_tokens`, is longer than
/// that, in a plan that knows its data.
void require_planned_lengths(const TrainingPlan& plan, int longest_tokens, std::string_view data,
                             std::string_view source);

/// "plan.json: phase 0 has memory for micro-batches of 640 tokens, and this run makes one of 1280: ...": about the
/// first phase whose largest micro-batch, of largest_tokens[phase], may need more than a rank's limit in `cluster`;
/// empty if none may. A rank's memory is taken to grow with the tokens as a whole, which is the most it can.
std::string micro_batches_beyond_memory(const TrainingPlan& plan, const Cluster& cluster,
                                        std::span<const std::int64_t> largest_tokens, std::string_view source);

}  // namespace frostpipe
