#include "operators/training/net_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/steady_clock.h"
#include "executor/training/policy/resume_point.h"
#include "operators/execute_net.h"
#include "operators/graph/counted_operators.h"
#include "operators/plan/net_phase.h"
#include "operators/simulator/run_operators.h"
#include "operators/training/net_results.h"
#include "operators/training/net_scores.h"
#include "operators/training/net_session.h"

namespace frostpipe {
namespace {

/// Throws InvalidInput unless the plan's graph is that of the folder's net. The classifier may be for other labels,
/// which changes only sizes.
void require_same_net(const OperatorPlan& plan, const NetFolder& folder, const std::string& source) {
  const OperatorGraph graph = frozen(counted_operators(folder.net, plan.graph.batch).graph, plan.frozen_layers);
  const OperatorGraph& planned = plan.graph;
  const auto refuse = [&](const char* part, const std::string& value) {
    throw InvalidInput(
        fmt::format("{}: graph.{}", source, part),
        fmt::format("must be those of {} with pictures of {} pixels (nets profile --model {}, or another --model)",
                    folder.path.string(), folder.net.picture_size, folder.path.string()),
        value);
  };
  const int classifier = static_cast<int>(folder.net.layers.size()) - 1;
  const auto is_same = [&](const Operator& a, const Operator& b) {
    return a.name == b.name && a.kind == b.kind && a.layer == b.layer &&
           (a.layer == classifier || (a.output_bytes == b.output_bytes && a.weight_bytes == b.weight_bytes));
  };
  const auto [ours, theirs] = std::ranges::mismatch(graph.operators, planned.operators, is_same);
  if (theirs != planned.operators.end()) refuse("operators", fmt::format("another one at {}", theirs->name));
  if (ours != graph.operators.end()) refuse("operators", "fewer");
  const auto [our_edge, edge] = std::ranges::mismatch(graph.edges, planned.edges);
  if (edge != planned.edges.end())
    refuse("edges", fmt::format("another one from {} to {}", planned.operators[edge->from].name,
                                planned.operators[edge->to].name));
  if (our_edge != graph.edges.end()) refuse("edges", "fewer");
}

Dataset load_dataset(const TrainOptions& options, const NetFolder& folder) {
  if (task_of(options.data) != Task::image_classification)
    throw InvalidInput(options.data.string(), "must be pictures: a folder with a sub-folder per label, or CIFAR's .bin",
                       "something else");
  return load_pictures({options.data, options.test_data, options.held_out, options.seed},
                       image_input(folder, options.samples, options.seed), folder.label_names);
}

Model model_of(const NetFolder& folder) {
  Model model{.name = folder.name};
  for (const NetLayer& layer : folder.net.layers)
    model.layers.push_back({.name = layer.name,
                            .kind = LayerKind::layer,
                            .block = static_cast<int>(model.layers.size()),
                            .parameter_count = num_parameters(layer)});
  return model;
}

}  // namespace

NetTask::NetTask(const TrainOptions& options)
    : options_(options), folder_(open_net_folder(options.model)), dataset_(load_dataset(options, folder_)) {
  set_labels(folder_, dataset_.label_names);
  model_ = model_of(folder_);
  for (const Phase& phase : options.plan.phases) {
    OperatorPlan plan = operator_plan_of(phase, options.plan_source);
    require_same_net(plan, folder_, options.plan_source);
    cpu_classes_of(plan, options.plan_source);
    simulate_operators(plan, tasks_of(plan.graph, plan.machine, plan.placement), options.plan_source);
    if (&phase == &options.plan.phases.front()) first_plan_ = std::move(plan);
  }
  if (static_cast<int>(dataset_.split.train.size()) < first_plan_.graph.batch)
    throw InvalidInput(options.data.string(),
                       fmt::format("must have at least {} samples to train on, the mini-batch of {}",
                                   first_plan_.graph.batch, options.plan_source),
                       std::to_string(dataset_.split.train.size()));
}

std::vector<std::string> NetTask::starts_at_random() const { return check_weights(folder_, WeightFiles(folder_.path)); }

std::unique_ptr<TrainingSession> NetTask::make_session(const SessionPlace& place) const {
  return std::make_unique<NetSession>(*this, place);
}

void NetTask::complete(const TrainingPlan& executed, RunSummary& run, Trace& whole_run) const {
  describe(first_plan_, run);
  whole_run.stage_names = stage_names(first_plan_);
  for (std::size_t i = 0; i < run.phases.size(); ++i)
    add_prediction(executed.phases[i], first_plan_, options_.plan_source, run.phases[i]);
}

std::vector<CpuClass> cpu_classes_of(const OperatorPlan& plan, const std::string& source) {
  std::vector<CpuClass> classes;
  for (const OperatorDevice& device : plan.machine.devices) {
    const auto found = parse_cpu_class(device.device_class);
    if (!found)
      throw InvalidInput(fmt::format("{}: machine.devices[{}].device_class", source, classes.size()),
                         "must be \"cpu\", \"cpu x THREADS\" or \"cpu / SLOWDOWN\" to be trained on (nets "
                         "profile --model FOLDER --hardware \"cpu,cpu / 2\"); frostpipe nets rehearse takes any",
                         device.device_class);
    classes.push_back(*found);
  }
  return classes;
}

InputsFound check_net_inputs(const TrainOptions& options) {
  const Nanoseconds begin_ns = steady_now_ns();
  const auto task = std::make_shared<const NetTask>(options);
  const Dataset& dataset = task->dataset();
  const NetFolder& folder = task->folder();
  InputsFound found{.training_task = task,
                    .reading_ns = steady_now_ns() - begin_ns,
                    .num_training_samples = static_cast<int>(dataset.split.train.size()),
                    .longest_tokens = 1,
                    .starts_at_random = may_go_on(options) ? std::vector<std::string>{} : task->starts_at_random(),
                    .notes = dataset.notes,
                    .largest_file = options.output / "model/model.safetensors",
                    .largest_file_bytes = Bytes{sizeof(float)} * num_parameters(folder.net),
                    .weights_bytes = Bytes{sizeof(float)} * num_parameters(folder.net)};
  if (folder.dropout > 0)
    found.notes.push_back(
        fmt::format("{}: the dropout of its classifier, {} by config.json or by default, is not applied",
                    options.model.string(), folder.dropout));
  return found;
}

}  // namespace frostpipe
