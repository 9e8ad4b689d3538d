#include "operators/training/net_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "operators/graph/counted_operators.h"
#include "operators/simulator/run_operators.h"
#include "operators/training/net_scores.h"

namespace frostpipe {
namespace {

/// The classifier may be for other labels: that changes nothing but sizes.
void require_same_net(const OperatorPlan& plan, const NetFolder& folder, const std::string& source) {
  const OperatorGraph graph = frozen(counted_operators(folder.net, plan.graph.batch).graph, plan.frozen_layers);
  const auto& planned = plan.graph.operators;
  const int classifier = static_cast<int>(folder.net.layers.size()) - 1;
  const auto is_same = [&](const Operator& a, const Operator& b) {
    return a.name == b.name && a.kind == b.kind && a.layer == b.layer &&
           (a.layer == classifier || (a.output_bytes == b.output_bytes && a.weight_bytes == b.weight_bytes));
  };
  const auto [ours, theirs] = std::ranges::mismatch(graph.operators, planned, is_same);
  if (ours == graph.operators.end() && theirs == planned.end() && graph.edges == plan.graph.edges) return;
  throw InvalidInput(
      fmt::format("{}: graph.operators", source),
      fmt::format("must be those of {} with pictures of {} pixels (nets profile --model {}, or another --model)",
                  folder.path.string(), folder.net.picture_size, folder.path.string()),
      theirs == planned.end() ? "fewer" : fmt::format("another one at {}", theirs->name));
}

}  // namespace

NetTask open_net_task(const NetTrainOptions& options) {
  const TrainOptions& common = options.common;
  NetTask task{.folder = open_net_folder(common.model), .dataset = {}};
  if (task_of(common.data) != Task::image_classification)
    throw InvalidInput(common.data.string(), "must be pictures: a folder with a sub-folder per label, or CIFAR's .bin",
                       "something else");
  task.dataset = load_pictures({common.data, common.test_data, common.held_out, common.seed},
                               image_input(task.folder, common.samples, common.seed), task.folder.label_names);
  set_labels(task.folder, task.dataset.label_names);
  for (const NetPhase& phase : options.phases) {
    require_same_net(phase.plan, task.folder, common.plan_source);
    cpu_classes_of(phase.plan, common.plan_source);
    simulate_operators(phase.plan, tasks_of(phase.plan.graph, phase.plan.machine, phase.plan.placement),
                       common.plan_source);
  }
  const int batch = options.phases.front().plan.graph.batch;
  if (static_cast<int>(task.dataset.split.train.size()) < batch)
    throw InvalidInput(common.data.string(),
                       fmt::format("must have a mini-batch of {} samples to train on ({})", batch, common.plan_source),
                       std::to_string(task.dataset.split.train.size()));
  return task;
}

void require_ranks(const OperatorPlan& plan, const RankEnvironment& self) {
  const int num_devices = static_cast<int>(plan.machine.devices.size());
  if (self.world_size != num_devices)
    throw InvalidInput("machine.devices of the plan",
                       fmt::format("must be as many as the ranks that were started ({})", self.world_size),
                       std::to_string(num_devices));
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

NetInputsFound check_net_inputs(const NetTrainOptions& options) {
  const NetTask task = open_net_task(options);
  std::vector<std::string> notes = task.dataset.notes;
  if (task.folder.dropout > 0)
    notes.push_back(
        fmt::format("{}: nothing is dropped before its classifier (its config.json says {} of all features)",
                    options.common.model.string(), task.folder.dropout));
  return {.num_training_samples = static_cast<int>(task.dataset.split.train.size()),
          .num_test_samples = static_cast<int>(task.dataset.split.test.size()),
          .largest_file_bytes = 2 * Bytes{sizeof(float)} * num_parameters(task.folder.net),  // with momentum
          .starts_at_random = check_weights(task.folder, WeightFiles(task.folder.path)),
          .notes = std::move(notes)};
}

}  // namespace frostpipe
