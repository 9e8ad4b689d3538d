#pragma once
// A model of two blocks on two devices; the slow one is particularly slow for the second block.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <variant>

#include "serving/planner/make_serving_plan.h"

namespace frostpipe::examples {

inline constexpr Nanoseconds kMillisecond = 1'000'000;

/// Two blocks. The first takes 4 ms on both classes, the second 4 ms on the fast and 20 ms on the slow one.
inline ModelToServe model_of_two_blocks() {
  ServingProfile profile{.model_name = "net", .block_ends = {1, 2}, .weight_bytes = {100, 100}, .cut_bytes = {1000}};
  profile.times = {{.device_type = "fast", .forward_ns = {{4 * kMillisecond}, {4 * kMillisecond}}},
                   {.device_type = "slow", .forward_ns = {{4 * kMillisecond}, {20 * kMillisecond}}}};
  return {.name = "net", .objective_ns = 20 * kMillisecond, .profile = profile};
}

/// One fast and one slow device, 1 ms for the bytes of the cut, a margin of 40 %: 12 ms for a request.
inline ServingProblem two_devices() {
  return {.classes = {{.name = "fast", .count = 1, .bandwidth_bytes_per_second = 1'000'000, .price_per_hour = 3},
                      {.name = "slow", .count = 1, .bandwidth_bytes_per_second = 1'000'000, .price_per_hour = 1}},
          .models = {model_of_two_blocks()}};
}

/// A valid plan. Throws if there is none.
inline ServingPlan planned(ServingMethod method, const ServingProblem& problem) {
  auto result = make_serving_plan(method, problem);
  if (const auto* none = std::get_if<Infeasible>(&result)) throw std::runtime_error(none->reason);
  auto plan = std::get<ServingPlan>(std::move(result));
  validate(plan, "plan");
  EXPECT_EQ(serving_plan_from_json(to_json(plan), "plan"), plan);
  return plan;
}

}  // namespace frostpipe::examples
