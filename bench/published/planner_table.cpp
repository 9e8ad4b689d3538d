#include "bench/published/planner_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cli/shared/table.h"
#include "planner/auto_plan.h"
#include "planner/make_plan.h"
#include "planner/published/pipedream.h"
#include "profiles/estimate.h"
#include "profiles/files.h"
#include "profiles/hardware.h"
#include "profiles/import/config_shape.h"
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
    auto made = make_auto_plan(on.profile, on.cluster, options);
    if (auto* plan = std::get_if<AutoPlan>(&made)) {
      timed.lower_bound_ns = plan->lower_bound_ns;
      timed.result = std::move(plan->plan);
    } else {
      timed.result = std::get<Infeasible>(std::move(made));
    }
  } else {
    timed.result = make_plan(on.profile, on.cluster, options);
  }
  timed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return timed;
}

TransformerShape gpt(const std::string& name, int blocks, int hidden, int heads) {
  return shape_from_config(
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

Workplace workplace(const std::string& what, const TransformerShape& shape, const std::string& hardware, int ranks,
                    int nodes, int batch, int samples, std::vector<int> tensor_sizes = {1}) {
  const Hardware device = find_hardware(hardware);
  const EstimateOptions options{.rates = rates_of(device),
                                .num_nodes = nodes,
                                .ranks_per_node = ranks / nodes,
                                .global_batch_size = batch,
                                .num_samples = samples,
                                .memory_limit_bytes = device.memory_bytes,
                                .tensor_parallel_sizes = std::move(tensor_sizes)};
  return {fmt::format("{}, {} x {}, batch {}", what, ranks, hardware, batch), estimate(shape, options), batch};
}

const TransformerShape& known_shape(const std::string& name) {
  const auto& shapes = known_shapes();
  return *std::find_if(shapes.begin(), shapes.end(), [&](const TransformerShape& one) { return one.name == name; });
}

PlanOptions options_for(const Workplace& place, PlanMethod method, int num_steps) {
  PlanOptions options{.method = method, .global_batch_size = place.global_batch_size, .num_steps = num_steps};
  options.tokens = static_cast<int>(place.estimate.profile.workload->tokens);
  return options;
}

std::string layout_text(const Phase& phase) {
  return fmt::format("{} x {} x {}", phase.layout.pipeline_parallel_size, phase.layout.data_parallel_size,
                     phase.layout.tensor_parallel_size);
}

std::string methods_text() {
  using enum Table::Align;
  std::string text;
  for (const Workplace& place :
       {workplace("ViT-B/16", known_shape("vit-b16"), "RTX5000", 8, 1, 400, 50000),
        workplace("BERT-large", known_shape("bert-large"), "RTX5000", 8, 1, 64, 88000),
        workplace("GPT 6.7B", gpt("gpt-6.7b", 32, 4096, 32), "A100", 64, 8, 512, 51200, {1, 2, 4, 8}),
        workplace("GPT-3 175B", gpt("gpt-175b", 96, 12288, 96), "A100", 1024, 128, 1536, 153600, {1, 2, 4, 8})}) {
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
      const Timed made = planned(place.estimate, options_for(place, method, 1));
      bound = std::max(bound, made.lower_bound_ns);
      const std::string seconds = fmt::format("{:.3f}", made.seconds);
      const auto* plan = std::get_if<TrainingPlan>(&made.result);
      if (!plan) {
        table.add_row({std::string(to_string(method)), "does not fit", "", "", "", "", "", seconds});
        continue;
      }
      const Phase& phase = plan->phases.front();
      table.add_row(
          {std::string(to_string(method)), layout_text(phase), std::to_string(phase.num_micro_batches), phase.schedule,
           phase.recompute ? std::string(to_string(*phase.recompute)) : "-",
           in_milliseconds(phase.predicted.iteration_ns),
           fmt::format("{:.1f}",
                       100 * (static_cast<double>(phase.predicted.iteration_ns) / static_cast<double>(bound) - 1)),
           seconds});
    }
    text += fmt::format("{}\n{}\n", place.name, table.to_string());
  }
  return text;
}

/// PipeTransformer's own workloads on one machine: 8 ranks, one freeze an epoch by the cap with alpha 1/3.
std::string whole_runs_text() {
  using enum Table::Align;
  std::string text;
  struct Run {
    Workplace place;
    int epochs;
  };
  for (const auto& [place, epochs] :
       {Run{workplace("ViT-B/16 on CIFAR-100's 50,000 images", known_shape("vit-b16"), "RTX5000", 8, 1, 400, 50000),
            10},
        Run{workplace("BERT-large on SQuAD's 88,000 samples", known_shape("bert-large"), "RTX5000", 8, 1, 64, 88000),
            3}}) {
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
      int changes = 0;
      for (std::size_t i = 1; i < plan->phases.size(); ++i)
        changes += plan->phases[i].layout != plan->phases[i - 1].layout ||
                   plan->phases[i].partition != plan->phases[i - 1].partition;
      table.add_row({name, fmt::format("{:.0f}", seconds), fmt::format("{:.2f}", published / seconds),
                     std::to_string(changes), fmt::format("{:.3f}", made.seconds)});
    };
    PlanOptions ours = options_for(place, PlanMethod::pipetransformer, epochs * per_epoch);
    add("published rule: halves by parameters, greedy partition, frozen layers on the first GPU, GPipe",
        options_for(place, PlanMethod::pipetransformer_published, ours.num_steps));
    ours.partitioner = Partitioner::pipetransformer_greedy;
    ours.schedule = "GPipe";
    ours.use_cache = false;
    add("when and to what to change by dynamic programming over the run", ours);
    ours.partitioner = Partitioner::exact;
    add("+ partition by time, frozen layers anywhere", ours);
    ours.schedule.clear();
    add("+ 1F1B where it is faster", ours);
    ours.use_cache = true;
    add("+ activation cache where it pays", ours);
    text += fmt::format("{}, {} epochs, the same freezes\n{}\n", place.name, epochs, table.to_string());
  }
  return text;
}

std::string imported_text(const std::string& data) {
  using enum Table::Align;
  constexpr double kBytesPerSecond = 1e9;
  Table table({{"profile", left},
               {"layers", right},
               {"GPUs", right},
               {"stages", right},
               {"times one GPU", right},
               {"times data parallelism", right},
               {"planned in [s]", right}});
  for (const char* const name : {"vgg16", "resnet50", "resnet101", "gnmt", "inception_v3"}) {
    const auto path = std::filesystem::path(data) / "pipedream" / (std::string(name) + ".graph.txt");
    const Profile profile =
        import_profile(read_text_file(path), path.string(), {.measured_samples = 1, .global_batch_size = 1});
    std::vector<PipeDreamLayer> layers;
    double compute = 0, parameters = 0;
    for (const Measurement& one : profile.measurements) {
      const double bytes = 4.0 * static_cast<double>(profile.model.layers[one.key.layer].parameter_count);
      layers.push_back({.compute_ns = static_cast<double>(one.cost.forward_ns + one.cost.input_gradient_ns +
                                                          one.cost.weight_gradient_ns),
                        .activation_bytes = static_cast<double>(one.cost.output_activation_bytes),
                        .parameter_bytes = bytes});
      compute += layers.back().compute_ns;
      parameters += bytes;
    }
    for (const std::vector<int>& parts : {std::vector{4}, {8}, {16}, {4, 4}, {8, 8}}) {
      std::vector<PipeDreamLevel> machine;
      int gpus = 1;
      std::string shape;
      for (const int part : parts) {
        machine.push_back({.parts = part, .bytes_per_second = kBytesPerSecond});
        gpus *= part;
        shape += (shape.empty() ? "" : " x ") + std::to_string(part);
      }
      const auto begin = std::chrono::steady_clock::now();
      const PipeDreamPlan plan = pipedream_plan(layers, machine);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const double data_parallel = std::max(compute, 2e9 * (gpus - 1) * parameters / kBytesPerSecond) / gpus;
      table.add_row({name, std::to_string(layers.size()), shape, std::to_string(plan.stages.size()),
                     fmt::format("{:.2f}", compute / plan.slowest_ns),
                     fmt::format("{:.2f}", data_parallel / plan.slowest_ns), fmt::format("{:.3f}", seconds)});
    }
  }
  std::string text =
      fmt::format("PipeDream's dynamic programme on its own profiles, 1 GB/s everywhere\n{}\n", table.to_string());

  const auto piper = std::filesystem::path(data) / "piper" / "bert32a100.json";
  Table large({{"GPUs", right},
               {"stages x replicas x tensor", right},
               {"iteration [ms]", right},
               {"above the bound [%]", right},
               {"planned in [s]", right}});
  for (const int gpus : {8, 64, 512, 2048}) {
    Estimate on{.profile = import_profile(read_text_file(piper), piper.string(),
                                          {.measured_samples = 1, .global_batch_size = 1920}),
                .cluster = {}};
    on.cluster = estimated_cluster({.num_nodes = gpus / 8, .ranks_per_node = 8, .memory_limit_bytes = Bytes{8} << 30},
                                   on.profile.measurements.front().key.device_type);
    PlanOptions options{.method = PlanMethod::automatic, .global_batch_size = 1920, .num_steps = 1};
    options.tokens = 1;
    const Timed made = planned(on, options);
    if (const auto* plan = std::get_if<TrainingPlan>(&made.result)) {
      const Phase& phase = plan->phases.front();
      large.add_row({std::to_string(gpus), layout_text(phase), in_milliseconds(phase.predicted.iteration_ns),
                     fmt::format("{:.1f}", 100 * (static_cast<double>(phase.predicted.iteration_ns) /
                                                      static_cast<double>(made.lower_bound_ns) -
                                                  1)),
                     fmt::format("{:.3f}", made.seconds)});
    } else {
      large.add_row({std::to_string(gpus), "does not fit", "", "", fmt::format("{:.3f}", made.seconds)});
    }
  }
  return text + fmt::format("Piper's BERT-32, 8 GiB, batch 1,920\n{}", large.to_string());
}

}  // namespace

std::string planner_text(const std::string& data) {
  return methods_text() + whole_runs_text() + (data.empty() ? "" : imported_text(data));
}

}  // namespace frostpipe
