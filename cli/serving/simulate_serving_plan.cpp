#include "cli/serving/simulate_serving_plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "cli/serving/serving_plan_text.h"
#include "cli/serving/serving_run_text.h"
#include "cli/serving/serving_trace.h"
#include "cli/shared/common_options.h"
#include "cli/shared/table.h"
#include "serving/simulator/simulate_serving.h"

namespace frostpipe {
namespace {

std::string simulation_text(const ServingLoad& load, DataPlane data_plane, const std::vector<ServedModelRun>& models) {
  const std::string seed = load.seed ? fmt::format(" (seed {})", *load.seed) : "";
  std::string text = fmt::format("{}{}, {:.1f} requests/s for {}, {} data plane\n\n", load.source, seed,
                                 load.requests_per_second, format_duration(load.window_ns), to_string(data_plane));
  text += models_table(models) + "\n" + pools_table(models);
  const std::string losses = losses_text(models);
  return losses.empty() ? text : text + "\n" + losses;
}

std::string simulation_json(const ServingLoad& load, DataPlane data_plane, const std::vector<ServedModelRun>& models) {
  nlohmann::ordered_json json = {{"format", "frostpipe.serving_simulation"},
                                 {"version", 1},
                                 {"data_plane", to_string(data_plane)},
                                 {"arrivals", load.source},
                                 {"requests_per_second", load.requests_per_second},
                                 {"window_ns", load.window_ns},
                                 {"models", nlohmann::ordered_json::array()}};
  if (load.seed) json["seed"] = *load.seed;
  for (const ServedModelRun& model : models) json["models"].push_back(serving_run_json(model.run, model.summary));
  return json_text(json, 2) + "\n";
}

}  // namespace

void add_simulate_serving_options(CLI::App& command, SimulateServingOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to simulate")->required()->type_name("");
  add_serving_load_options(command, options.load);
  command
      .add_option("--data-plane", options.data_plane,
                  "reserved: a batch has all its devices and links reserved before it starts, as PPipe does; reactive: "
                  "every pool decides by itself")
      ->check(CLI::IsMember({"reserved", "reactive"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--timeline", options.timeline, "Also write the whole run as a Chrome trace (for Perfetto)")
      ->type_name("FILE");
  add_format_option(command, options.format);
}

std::string simulate_serving_plan(const SimulateServingOptions& options) {
  const ServingPlan plan = load_serving_plan(options.plan);
  const DataPlane data_plane = options.data_plane == "reactive" ? DataPlane::reactive : DataPlane::reserved;
  const ServingLoad load = serving_load(plan, options.load);
  std::vector<ServedModelRun> models;
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    const ServingRun run = simulate_serving(plan, plan.models[i], load.arrivals[i], load.window_ns,
                                            {.data_plane = data_plane, .timeline = !options.timeline.empty()});
    models.push_back({.name = run.model, .run = run, .summary = summarize(run)});
  }
  if (!options.timeline.empty()) {
    std::vector<ServingRun> runs;
    for (const auto& model : models) runs.push_back(model.run);
    write_named_file(options.timeline, serving_chrome_trace(runs));
  }
  return options.format == "json" ? simulation_json(load, data_plane, models)
                                  : simulation_text(load, data_plane, models);
}

}  // namespace frostpipe
