#pragma once
#include <string>
#include <vector>

#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The times of an action of any stage and of a message on any link, for schedules without a plan.
struct ScheduleTimes {
  std::vector<double> compute_ms{1, 1, 1};  // times of F, I and W of one stage
  double latency_ms = 0;                    // latency of a message; it does not occupy the link
  double message_ms = 0;                    // time for which a message occupies its link
};

/// Adds --compute-ms, --latency-ms and --message-ms.
void add_times_options(CLI::App& command, ScheduleTimes& times);

UniformCosts costs_of(const ScheduleTimes& times);

/// Simulates the schedule and returns its makespan, bubbles and micro-batches in flight, as a text or as JSON.
/// `weight_gradient_share` is the fraction of a micro-batch's saved activations that it still keeps from I until W.
std::string schedule_times_text(const Schedule& compute, const ScheduleTimes& times, double weight_gradient_share,
                                const std::string& format);

}  // namespace frostpipe
