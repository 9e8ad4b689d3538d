#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/files.h"
#include "papers/planner_table.h"
#include "planner/published/pipedream.h"
#include "profiles/import/import.h"

namespace frostpipe {
namespace {

constexpr double kBytesPerSecond = 1e9;

/// A profile in the form of PipeDream's planner.
struct PipeDreamChain {
  std::vector<PipeDreamLayer> layers;
  double compute_ns = 0, parameter_bytes = 0;  // of all layers
};

PipeDreamChain read_chain(const std::filesystem::path& path) {
  const Profile profile =
      import_profile(read_text_file(path), path.string(), {.measured_samples = 1, .global_batch_size = 1});
  PipeDreamChain chain;
  for (const Measurement& one : profile.measurements) {
    const double bytes = 4.0 * static_cast<double>(profile.model.layers[one.key.layer].parameter_count);
    chain.layers.push_back({.compute_ns = static_cast<double>(one.cost.forward_ns + one.cost.input_gradient_ns +
                                                              one.cost.weight_gradient_ns),
                            .activation_bytes = static_cast<double>(one.cost.output_activation_bytes),
                            .parameter_bytes = bytes});
    chain.compute_ns += chain.layers.back().compute_ns;
    chain.parameter_bytes += bytes;
  }
  return chain;
}

/// Plans for a machine whose levels have `parts` parts, the innermost level first, and adds the row.
void add_row(Table& table, const std::string& name, const PipeDreamChain& chain, const std::vector<int>& parts) {
  std::vector<PipeDreamLevel> machine;
  int gpus = 1;
  std::string shape;
  for (const int part : parts) {
    machine.push_back({.parts = part, .bytes_per_second = kBytesPerSecond});
    gpus *= part;
    shape += (shape.empty() ? "" : " x ") + std::to_string(part);
  }
  const auto begin = std::chrono::steady_clock::now();
  const PipeDreamPlan plan = pipedream_plan(chain.layers, machine);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double data_parallel_ns =
      std::max(chain.compute_ns, 2e9 * (gpus - 1) * chain.parameter_bytes / kBytesPerSecond) / gpus;
  table.add_row({name, std::to_string(chain.layers.size()), shape, std::to_string(plan.stages.size()),
                 fmt::format("{:.2f}", chain.compute_ns / plan.slowest_ns),
                 fmt::format("{:.2f}", data_parallel_ns / plan.slowest_ns), fmt::format("{:.3f}", seconds)});
}

}  // namespace

TitledTable pipedream_table(const std::filesystem::path& data) {
  using enum Table::Align;
  Table table({{"profile", left},
               {"layers", right},
               {"GPUs", right},
               {"stages", right},
               {"times one GPU", right},
               {"times data parallelism", right},
               {"planned in [s]", right}});
  for (const std::string name : {"vgg16", "resnet50", "resnet101", "gnmt", "inception_v3"}) {
    const PipeDreamChain chain = read_chain(data / "pipedream" / (name + ".graph.txt"));
    for (const std::vector<int>& parts : {std::vector{4}, {8}, {16}, {4, 4}, {8, 8}})
      add_row(table, name, chain, parts);
  }
  return {"PipeDream's dynamic program on its own profiles, 1 GB/s everywhere", std::move(table)};
}

}  // namespace frostpipe
