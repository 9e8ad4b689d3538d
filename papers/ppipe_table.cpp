#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/error.h"
#include "papers/ppipe_data.h"
#include "papers/ppipe_simulation.h"
#include "papers/published_suites.h"

namespace frostpipe {
namespace {

struct TimedPlan {
  ServingPlan plan;
  double seconds = 0;
};

TimedPlan timed_plan(const PPipePlan& shipped) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = make_serving_plan(shipped.method, shipped.problem);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (const auto* none = std::get_if<Infeasible>(&result))
    throw InvalidInput(fmt::format("{} on {}: {}", shipped.models, shipped.cluster, none->reason));
  return {std::get<ServingPlan>(std::move(result)), seconds};
}

}  // namespace

PublishedTable ppipe_table(const std::string& folder) {
  PublishedTable table{.suite = "ppipe",
                       .source = "PPipe (USENIX ATC 2025): objective values and solver times of its artifact's plans"};
  const std::vector<PPipePlan> plans = load_ppipe_plans(folder);
  for (const PPipePlan& shipped : plans) {
    const auto [plan, seconds] = timed_plan(shipped);
    const std::string group = fmt::format("{} on {}", to_string(shipped.method), shipped.cluster);
    table.rows.push_back({.group = group,
                          .what = "throughput per weight [requests/s]",
                          .run = shipped.models,
                          .measured = objective_of(shipped),
                          .predicted = plan.objective_value,
                          .note = plan.objective_bound ? fmt::format("bound {:.2f}", *plan.objective_bound) : ""});
    if (shipped.seconds > 0)
      table.rows.push_back({.group = group,
                            .what = "planning time [s]",
                            .run = shipped.models,
                            .measured = shipped.seconds,
                            .predicted = seconds});
  }
  for (PublishedRow& row : ppipe_simulated_rows(ppipe_instances(plans))) table.rows.push_back(std::move(row));
  return table;
}

}  // namespace frostpipe
