// One iteration of a small BERT by each of the given schedules, for interop_test.py to compare with PyTorch:
//   frostpipe_interop_gradients FOLDER RANKS NAME/STAGES_PER_RANK/MICRO_BATCHES[/CSV]...
// With a CSV file the schedule is that of its rows, and NAME is one that no builder has. Every rank writes the weights
// and the gradients of its layers to FOLDER/NAME-STAGES_PER_RANK/RANK.safetensors, each tensor by layer, place in the
// layer and name; rank 0 also the mini-batch, whose samples are equally long.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "executor/checkpoint/safetensors.h"
#include "executor/device/device.h"
#include "executor/elastic/launch.h"
#include "executor/runtime/rank_session.h"
#include "executor/runtime/transformer_stage.h"
#include "plan/schedule_rows.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"

namespace frostpipe::test {
namespace {

constexpr int kSamplesPerMicroBatch = 2, kTokens = 7;
constexpr std::uint64_t kSeed = 5;

struct Case {
  std::string schedule;
  int virtual_stages, num_micro_batches;
  std::string csv;  // a file; empty: by name
};

Case case_of(const std::string& text) {
  std::istringstream stream(text);
  Case found{};
  char slash;
  std::getline(stream, found.schedule, '/');
  stream >> found.virtual_stages >> slash >> found.num_micro_batches;
  if (stream >> slash) std::getline(stream, found.csv);
  return found;
}

TokenSamples samples_of_equal_length(int num_samples) {
  EncodedData data;
  for (int i = 0; i < num_samples; ++i) {
    std::vector<std::int32_t> ids;
    for (int t = 0; t < kTokens; ++t) ids.push_back(1 + (i * 13 + t * 7) % 39);
    data.token_ids.push_back(std::move(ids));
    data.labels.push_back(i * 2 % 3);
  }
  return TokenSamples(std::move(data));
}

Phase phase_of(const Case& one, int num_ranks) {
  Phase phase = small_phase(num_ranks, 1, one.num_micro_batches, one.schedule, 0, one.virtual_stages);
  if (one.csv.empty()) return phase;
  std::ifstream file(one.csv);
  const std::string csv{std::istreambuf_iterator<char>(file), {}};
  set_schedule_rows(phase, one.schedule, rows_of(csv), one.csv);
  require_schedule_rows(phase, one.csv);
  return phase;
}

/// By name; written in the order of the names.
using Tensors = std::map<std::string, at::Tensor>;

void write(const std::filesystem::path& path, const Tensors& tensors) {
  std::vector<SafetensorsWriter::Entry> entries;
  for (const auto& [name, tensor] : tensors)
    entries.push_back({name, tensor.scalar_type() == at::kLong ? "I64" : "F32", tensor.sizes().vec()});
  SafetensorsWriter writer(path, std::move(entries));
  for (const auto& [name, tensor] : tensors)
    writer.write({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
  writer.finish();
}

void add_layer(Tensors& tensors, const TransformerConfig& config, int layer, const LayerState& state) {
  std::int64_t offset = 0, place = 0;
  for (const ParameterSpec& spec : parameters_of(config, layer)) {
    const std::string name = fmt::format("{}.{}.{}", layer, place++, spec.names[0]);
    tensors["weights." + name] = state.weights.narrow(0, offset, spec.count()).view(spec.shape);
    tensors["gradients." + name] = state.gradients.narrow(0, offset, spec.count()).view(spec.shape);
    offset += spec.count();
  }
}

void run(const Case& one, const RankEnvironment& self, ComputeDevice& device, Communicator& communicator,
         const std::filesystem::path& folder) {
  const TransformerConfig config = small_config();
  const Model model = model_of(config, "small");
  const int num_samples = kSamplesPerMicroBatch * one.num_micro_batches;
  const TokenSamples samples = samples_of_equal_length(num_samples);
  std::vector<int> order(num_samples);
  std::iota(order.begin(), order.end(), 0);
  const MiniBatch batch = mini_batch(samples, order, num_samples, 0);

  const TransformerStageFactory factory({.config = config,
                                         .model = model,
                                         .data = samples,
                                         .types = layer_types_of(DType::kFloat32),
                                         .device = at::kCPU,
                                         .optimizer = Optimizer::kSgd});
  RankSession session(model, factory, communicator, device, Optimizer::kSgd, DType::kFloat32);
  session.start(phase_of(one, self.world_size), 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(config, layer, kSeed, state);
  });
  Trace trace;
  session.runner()->run_iteration(batch, nullptr, 0, {.rule = {.optimizer = Optimizer::kSgd}, .applied = false}, trace);

  Tensors tensors;
  for (const auto& [layer, state] : session.layers()) add_layer(tensors, config, layer, state);
  if (self.rank == 0) {
    const MicroBatch whole = samples.load(batch, batch.samples, at::kFloat, /*with_input=*/true);
    tensors["batch.token_ids"] = whole.input.view({num_samples, kTokens});
    tensors["batch.labels"] = whole.labels;
  }
  const std::filesystem::path results = folder / fmt::format("{}-{}", one.schedule, one.virtual_stages);
  std::filesystem::create_directories(results);
  write(results / fmt::format("{}.safetensors", self.rank), tensors);
}

void run_all(const RankEnvironment& self, const std::filesystem::path& folder, const std::vector<std::string>& cases) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  for (const std::string& text : cases) run(case_of(text), self, *device, *communicator, folder);
}

}  // namespace
}  // namespace frostpipe::test

int main(int argc, char** argv) {
  using namespace frostpipe;
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s FOLDER RANKS NAME/STAGES_PER_RANK/MICRO_BATCHES[/CSV]...\n", argv[0]);
    return 2;
  }
  try {
    const std::unique_ptr<Membership> membership = Membership::join();
    if (!membership) return launch_local_ranks({.command = arguments, .num_ranks = std::stoi(arguments[2])});
    test::run_all(membership->next_round()->self, arguments[1], {arguments.begin() + 3, arguments.end()});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
