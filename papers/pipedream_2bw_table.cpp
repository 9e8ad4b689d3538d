#include <fmt/format.h>

#include "base/seconds.h"
#include "papers/published_suites.h"
#include "simulator/simulate.h"
#include "simulator/table_cost_model.h"

namespace frostpipe {
namespace {

// The machine has 8 servers of 8 V100s. Two values are from the paper's text and figures: 45 TFLOP/s on one device, and
// 1.7 GB/s of the 25 Gbit/s between servers, which its tensor-parallel runs imply.
constexpr double kDeviceFlops = 45e12, kServerBytesPerSecond = 1.7e9, kDeviceMemoryBytesPerSecond = 900e9,
                 kUpdateBytesPerParameter = 30;
constexpr int kSequence = 512, kVocabulary = 51200;

struct Gpt {
  const char* name;
  double layers, hidden;

  double parameters() const { return 12 * layers * hidden * hidden + kVocabulary * hidden; }
  /// Returns the operations of the forward, the backward and the recomputed forward of one sequence.
  double flops() const {
    return 96 * kSequence * layers * hidden * hidden *
           (1 + kSequence / (6 * hidden) + kVocabulary / (16 * layers * hidden));
  }
  double activation_bytes() const { return 2.0 * kSequence * hidden; }
};

struct Pipelines {
  int depth, width, micro_batch_size, global_batch_size;
};

/// Returns the training speed. All replicas of a stage are in one server, so their messages leave it through one card,
/// one after another; each rank waits until its message is through.
double sequences_per_second(const Gpt& gpt, const Pipelines& pipelines, bool flushes) {
  const auto& [d, w, b, batch] = pipelines;
  const double compute = b * gpt.flops() / d / kDeviceFlops,
               message = w * b * gpt.activation_bytes() / kServerBytesPerSecond;
  const StageTimes times{.forward_ns = nanoseconds_of(compute / 4 + message),
                         .backward_ns = nanoseconds_of(3 * compute / 4 + message)};
  const ScheduleShape shape{.pipeline_parallel_size = d, .num_micro_batches = batch / (w * b)};
  const TableCostModel costs(std::vector<std::vector<StageTimes>>(d, {times}), std::vector<Segment>(d));
  const auto end = [&](int iterations) {
    const Schedule schedule = lower(unrolled(flushes ? one_f_one_b(shape) : pipedream_2bw(shape), iterations));
    return simulate_timing(schedule, {.pipeline_parallel_size = d}, costs, 1).iteration_end_ns.front();
  };
  const Nanoseconds period = flushes ? end(1) : end(4) - end(3);  // with a flush, iterations do not overlap
  const double update = kUpdateBytesPerParameter * gpt.parameters() / d / kDeviceMemoryBytesPerSecond;
  return batch / (1e-9 * static_cast<double>(period) + update);
}

/// Returns the speed of the tensor parallelism that Megatron had at that time, over `size` devices of several servers.
/// With recomputation, a layer has 6 all-reduces of [sequence, hidden]; each sends 2 (size - 1) / size of its bytes.
double tensor_parallel_sequences_per_second(const Gpt& gpt, int size, int devices) {
  const double exchanged = gpt.layers * 12 * (size - 1) / size * gpt.activation_bytes() / kServerBytesPerSecond;
  return devices / size / (exchanged + gpt.flops() / size / kDeviceFlops);
}

}  // namespace

PublishedTable pipedream_2bw_table() {
  PublishedTable table{
      .suite = "pipedream-2bw",
      .source = "Narayanan et al., ICML 2021: GPT with sequences of 512 on 64 V100s; speeds are read off figures",
      .rows = {}};
  constexpr Gpt kSmall{"2.2B", 32, 2304}, kLarge{"3.8B", 32, 3072};
  const auto add = [&](const char* group, const char* what, std::string run, double published, double ours) {
    table.rows.push_back(
        {.group = group, .what = what, .run = std::move(run), .measured = published, .predicted = ours});
  };
  const auto pipelines = [](const Gpt& gpt, int batch) {
    return gpt.hidden < 3000 ? Pipelines{8, 8, 8, batch} : Pipelines{16, 4, 8, batch};
  };
  for (const auto& [gpt, batch, published] :
       {std::tuple{kSmall, 512, 130.0}, {kSmall, 2048, 160.0}, {kLarge, 512, 100.0}, {kLarge, 2048, 120.0}})
    add("2BW", "sequences/s", fmt::format("{}, batch {}", gpt.name, batch), published,
        sequences_per_second(gpt, pipelines(gpt, batch), false));
  for (const auto& [batch, published] : {std::pair{512, 1.6}, {2048, 1.15}})
    add("over flushing", "times", fmt::format("2.2B, batch {}", batch), published,
        sequences_per_second(kSmall, pipelines(kSmall, batch), false) /
            sequences_per_second(kSmall, pipelines(kSmall, batch), true));
  add("over tensor parallelism", "times", "3.8B, 16 devices", 20,
      sequences_per_second(kLarge, pipelines(kLarge, 2048), false) /
          tensor_parallel_sequences_per_second(kLarge, 16, 64));
  return table;
}

}  // namespace frostpipe
