#include "papers/planner_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "plan/stages.h"
#include "planner/auto_plan.h"
#include "planner/make_plan.h"
#include "profiles/estimates/estimate.h"
#include "profiles/hardware.h"
#include "profiles/import/import.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

struct Timed {
  double seconds = 0;
  PlanResult result;
  Nanoseconds lower_bound_ns = 0;
};

Timed planned(const Estimate& on, const PlanOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Timed timed;
  if (options.method == PlanMethod::automatic) {
    auto made = make_auto_plan({on.profile, on.cluster, options});
    if (auto* plan = std::get_if<AutoPlan>(&made)) {
      timed.lower_bound_ns = plan->lower_bound_ns;
      timed.result = std::move(plan->plan);
    } else {
      timed.result = std::get<Infeasible>(std::move(made));
    }
  } else {
    timed.result = make_plan({on.profile, on.cluster, options});
  }
  timed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return timed;
}

EstimatedModel gpt(const std::string& name, int blocks, int hidden, int heads) {
  return model_from_config(
      fmt::format(
          R"({{"model_type": "gpt2", "n_layer": {}, "n_embd": {}, "n_head": {}, "n_positions": 2048,
           "vocab_size": 51200}})",
          blocks, hidden, heads),
      name, 2048);
}

struct Workplace {
  std::string name;
  Estimate estimate;
  int global_batch_size = 0;
};

/// The cluster and the options with which a model is trained.
struct Job {
  std::string hardware;
  int ranks = 8, nodes = 1;
  int batch = 1, samples = 1;
  std::vector<int> tensor_sizes = {1};
};

Workplace workplace(const std::string& what, const EstimatedModel& model, const Job& job) {
  const Hardware device = find_hardware(job.hardware);
  const EstimateOptions options{.rates = rates_of(device),
                                .num_nodes = job.nodes,
                                .ranks_per_node = job.ranks / job.nodes,
                                .global_batch_size = job.batch,
                                .num_samples = job.samples,
                                .memory_limit_bytes = device.memory_bytes,
                                .tensor_parallel_sizes = job.tensor_sizes};
  return {fmt::format("{}, {} x {}, batch {}", what, job.ranks, job.hardware, job.batch), estimate(model, options),
          job.batch};
}

PlanOptions options_for(const Workplace& place, PlanMethod method, int num_steps) {
  PlanOptions options{.method = method, .global_batch_size = place.global_batch_size, .num_steps = num_steps};
  options.tokens = static_cast<int>(place.estimate.profile.workload->tokens);
  return options;
}

std::string seconds_text(const Timed& made) { return fmt::format("{:.3f}", made.seconds); }

/// Returns how far the plan's iteration is above the bound, in percent.
std::string gap_text(const Phase& phase, Nanoseconds bound) {
  return fmt::format("{:.1f}",
                     100 * (static_cast<double>(phase.predicted.iteration_ns) / static_cast<double>(bound) - 1));
}

std::string layout_text(const Phase& phase) {
  return fmt::format("{} x {} x {}", num_stages(phase), phase.layout.data_parallel_size,
                     phase.layout.tensor_parallel_size);
}

TitledTable methods_table(const Workplace& place) {
  using enum Table::Align;
  Table table({{"method", left},
               {"stages x replicas x tensor", right},
               {"micro-batches", right},
               {"schedule", left},
               {"recompute", left},
               {"iteration [ms]", right},
               {"above the bound [%]", right},
               {"planned in [s]", right}});
  Nanoseconds bound = 0;
  using enum PlanMethod;
  for (const PlanMethod method :
       {automatic, static_pipeline, exact, data_parallel, equal_split, pipedream, pipedream_2bw, ptd_p}) {
    const std::string name(to_string(method));
    const Timed made = planned(place.estimate, options_for(place, method, 1));
    bound = std::max(bound, made.lower_bound_ns);
    const auto* plan = std::get_if<TrainingPlan>(&made.result);
    if (!plan) {
      table.add_row({name, "does not fit", "", "", "", "", "", seconds_text(made)});
      continue;
    }
    const Phase& phase = plan->phases.front();
    table.add_row({name, layout_text(phase), std::to_string(phase.num_micro_batches), phase.schedule,
                   phase.recompute ? std::string(to_string(*phase.recompute)) : "-",
                   in_milliseconds(phase.predicted.iteration_ns), gap_text(phase, bound), seconds_text(made)});
  }
  return {place.name, std::move(table)};
}

int changes_of_layout(const TrainingPlan& plan) {
  int changes = 0;
  for (std::size_t i = 1; i < plan.phases.size(); ++i)
    changes +=
        plan.phases[i].layout != plan.phases[i - 1].layout || plan.phases[i].partition != plan.phases[i - 1].partition;
  return changes;
}

/// Plans runs in which layers freeze once per epoch, by cap_rule() with alpha 1/3.
TitledTable whole_run_table(const Workplace& place, int epochs) {
  using enum Table::Align;
  const int per_epoch =
      (place.estimate.profile.workload->num_samples + place.global_batch_size - 1) / place.global_batch_size;
  Table table({{"planned", left},
               {"whole run [s]", right},
               {"times as fast", right},
               {"changes of layout", right},
               {"planned in [s]", right}});
  double published = 0;
  const auto add = [&](const std::string& name, PlanOptions options) {
    options.freeze = {.warm_up_fraction = 1.0 / epochs, .interval_fraction = 1.0 / epochs, .alpha = 1.0 / 3};
    options.steps_per_epoch = per_epoch;
    options.cache.memory_bytes = Bytes{64} << 30;
    const Timed made = planned(place.estimate, options);
    const auto* plan = std::get_if<TrainingPlan>(&made.result);
    if (!plan) {
      table.add_row({name, "does not fit", "", "", ""});
      return;
    }
    const double seconds = 1e-9 * static_cast<double>(predicted_run_ns(*plan));
    if (published == 0) published = seconds;
    table.add_row({name, fmt::format("{:.0f}", seconds), fmt::format("{:.2f}", published / seconds),
                   std::to_string(changes_of_layout(*plan)), seconds_text(made)});
  };
  PlanOptions ours = options_for(place, PlanMethod::pipetransformer, epochs * per_epoch);
  add("published rule: halves by parameters, greedy partition, frozen layers on the first GPU, GPipe",
      options_for(place, PlanMethod::pipetransformer_published, ours.num_steps));
  ours.partitioner = Partitioner::pipetransformer_greedy;
  ours.schedule = "GPipe";
  ours.use_cache = false;
  add("dynamic programming over the run chooses the layouts and when to change them", ours);
  ours.partitioner = Partitioner::exact;
  add("+ partition by time, frozen layers anywhere", ours);
  ours.schedule.clear();
  add("+ any schedule where it is faster", ours);
  ours.use_cache = true;
  add("+ activation cache where it pays", ours);
  return {fmt::format("{}, {} epochs, the same freezes", place.name, epochs), std::move(table)};
}

}  // namespace

std::vector<TitledTable> method_tables() {
  std::vector<TitledTable> tables;
  for (const Workplace& place :
       {workplace("ViT-B/16", find_model("vit-b16", 0), {.hardware = "RTX5000", .batch = 400, .samples = 50000}),
        workplace("BERT-large", find_model("bert-large", 0), {.hardware = "RTX5000", .batch = 64, .samples = 88000}),
        workplace("GPT 6.7B", gpt("gpt-6.7b", 32, 4096, 32),
                  {.hardware = "A100",
                  .ranks = 64,
                  .nodes = 8,
                  .batch = 512,
                  .samples = 51200,
                  .tensor_sizes = {1, 2, 4, 8}}),
        workplace("GPT-3 175B", gpt("gpt-175b", 96, 12288, 96),
                  {.hardware = "A100",
                  .ranks = 1024,
                  .nodes = 128,
                  .batch = 1536,
                  .samples = 153600,
                  .tensor_sizes = {1, 2, 4, 8}})})
    tables.push_back(methods_table(place));
  return tables;
}

std::vector<TitledTable> whole_run_tables() {
  return {whole_run_table(workplace("ViT-B/16 on CIFAR-100's 50,000 images", find_model("vit-b16", 0),
                                    {.hardware = "RTX5000", .batch = 400, .samples = 50000}),
                          10),
          whole_run_table(workplace("BERT-large on SQuAD's 88,000 samples", find_model("bert-large", 0),
                                    {.hardware = "RTX5000", .batch = 64, .samples = 88000}),
                          3)};
}

TitledTable piper_table(const std::filesystem::path& data) {
  using enum Table::Align;
  const std::filesystem::path path = data / "piper" / "bert32a100.json";
  Table table({{"GPUs", right},
               {"stages x replicas x tensor", right},
               {"iteration [ms]", right},
               {"above the bound [%]", right},
               {"planned in [s]", right}});
  for (const int gpus : {8, 64, 512, 2048}) {
    Estimate on{.profile = import_profile(read_text_file(path), path.string(),
                                          {.measured_samples = 1, .global_batch_size = 1920}),
                .cluster = {}};
    on.cluster = estimated_cluster({.num_nodes = gpus / 8, .ranks_per_node = 8, .memory_limit_bytes = Bytes{8} << 30},
                                   on.profile.measurements.front().key.device_type);
    PlanOptions options{.method = PlanMethod::automatic, .global_batch_size = 1920, .num_steps = 1};
    options.tokens = 1;
    const Timed made = planned(on, options);
    if (const auto* plan = std::get_if<TrainingPlan>(&made.result)) {
      const Phase& phase = plan->phases.front();
      table.add_row({std::to_string(gpus), layout_text(phase), in_milliseconds(phase.predicted.iteration_ns),
                     gap_text(phase, made.lower_bound_ns), seconds_text(made)});
    } else {
      table.add_row({std::to_string(gpus), "does not fit", "", "", seconds_text(made)});
    }
  }
  return {"Piper's BERT-32, 8 GiB, batch 1,920", std::move(table)};
}

std::string planner_text(const std::string& data) {
  const auto text_of = [](const TitledTable& table) { return table.title + "\n" + table.table.to_string(); };
  std::string text;
  for (const TitledTable& table : method_tables()) text += text_of(table) + "\n";
  for (const TitledTable& table : whole_run_tables()) text += text_of(table) + "\n";
  if (data.empty()) return text;
  text += text_of(pipedream_table(data)) + "\n";
  return text + text_of(piper_table(data));
}

}  // namespace frostpipe
