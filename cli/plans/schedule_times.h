#pragma once
#include <cstdint>
#include <string>

#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The times of an action of any stage and of a message on any link, for schedules without a plan.
struct ScheduleTimes {
  double forward_ms = 1, backward_input_ms = 1, backward_weight_ms = 1;  // of one action of one stage
  double latency_ms = 0;
  std::int64_t activation_bytes = 0;       // of a message
  double bandwidth_gbytes_per_second = 0;  // 0 = unlimited
  bool split_overlap = false;              // runs overlapped pairs one after the other
};

/// Adds --forward-ms, --backward-input-ms, ...
void add_times_options(CLI::App& command, ScheduleTimes& times);

UniformCosts costs_of(const ScheduleTimes& times);

/// Simulates the schedule and returns its makespan, bubbles and micro-batches in flight, as a text or as JSON.
/// `weight_gradient_share` is the fraction of what a micro-batch keeps from F on that it still keeps from I until W.
std::string schedule_times_text(const Schedule& compute, const ScheduleTimes& times, double weight_gradient_share,
                                const std::string& format);

}  // namespace frostpipe
