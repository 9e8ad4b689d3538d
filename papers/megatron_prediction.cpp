#include "papers/megatron_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "base/seconds.h"
#include "simulator/simulate.h"
#include "simulator/table_cost_model.h"

namespace frostpipe {
namespace {

constexpr int kDevicesPerNode = 8;
constexpr std::int64_t kTile = 64;  // columns of a matrix product's tile on tensor cores

class LayerTimes {
 public:
  LayerTimes(const MegatronRun& run, const MegatronConstants& constants) : run_(run), constants_(constants) {}

  /// Returns the time of the forward of one layer and micro-batch on one tensor rank, without the least time for
  /// launches and without the all-reduces of the tensor ranks.
  double computing_seconds() const {
    const double h = run_.hidden, s = run_.tokens, t = run_.tensor_parallel_size, rows = run_.micro_batch_size * s;
    const double products = product(rows, h, 3 * h / t) + product(rows, h / t, h) + product(rows, h, 4 * h / t) +
                            product(rows, 4 * h / t, h);
    return products + attention() + elementwise();
  }

  /// Returns the time of the two all-reduces of a layer and micro-batch in each pass. Attention and MLP each begin with
  /// a matrix cut by columns and end with one cut by rows. So a forward adds up the outputs of the two (Megatron's g),
  /// and a backward the gradients of their inputs (its f); weight gradients need no sum. A recomputed forward is a
  /// whole forward; Megatron computes its last sum too, though nothing reads it. With everything recomputed a layer has
  /// 2 + 2 + 2 = 6, and 4 with nothing recomputed. (With sequence parallelism each would be an all-gather and a
  /// reduce-scatter of the same bytes together, and the backward would gather twice more, the inputs of its weight
  /// gradients: 6 reduce-scatters and 8 all-gathers.)
  double sums_seconds() const {
    return 2 * all_reduce(kHalfBytes * run_.micro_batch_size * run_.tokens * static_cast<double>(run_.hidden));
  }

  /// Returns the time of the forward of the vocabulary product and the loss. Each tensor rank has the same whole number
  /// of the vocabulary's columns; a remainder is left out.
  double head_seconds() const {
    const int columns = run_.vocabulary / run_.tensor_parallel_size;
    const double rows = static_cast<double>(run_.micro_batch_size) * run_.tokens;
    return product(rows, run_.hidden, columns, columns % 2 == 0 ? 1 : constants_.odd_vocabulary_efficiency) +
           by_memory(3 * 4 * rows * columns);  // the loss works in fp32
  }

  double by_memory(double bytes) const {
    return bytes / (constants_.memory_bytes_per_second * constants_.memory_efficiency);
  }

 private:
  bool is_aligned() const { return run_.hidden % (kTile * run_.tensor_parallel_size) == 0; }

  /// Returns the time of a matrix product, which reaches `share` of the usual efficiency.
  double product(double rows, double inner, double columns, double share = 1) const {
    const double flops = 2 * rows * inner * columns;
    const double efficiency = constants_.gemm_efficiency * share * (is_aligned() ? 1 : constants_.unaligned_efficiency);
    const double by_flops = (flops + constants_.gemm_half_flops) / (constants_.peak_flops * efficiency);
    return std::max(by_flops, by_memory(kHalfBytes * (rows * inner + inner * columns + rows * columns)));
  }

  /// Returns the time of attention's scores and of their product with the values. Each is limited by computation, at
  /// half the efficiency of large products, or by memory.
  double attention() const {
    const double h = run_.hidden, s = run_.tokens, t = run_.tensor_parallel_size, b = run_.micro_batch_size;
    const double flops = 2 * b * s * s * h / t, scores = kHalfBytes * b * run_.heads / t * s * s;
    const double by_flops =
        (flops + constants_.gemm_half_flops) / (constants_.peak_flops * constants_.gemm_efficiency / 2);
    return 2 * std::max(by_flops, by_memory(scores + 2 * kHalfBytes * b * s * h / t));
  }

  /// Returns the time of two norms, two residuals with dropout, biases, GELU, and softmax with mask and dropout, all
  /// limited by memory.
  double elementwise() const {
    const double h = run_.hidden, s = run_.tokens, t = run_.tensor_parallel_size, b = run_.micro_batch_size;
    const double values = b * s * h, scores = b * run_.heads / t * s * s;
    return by_memory(kHalfBytes *
                     (2 * 2 * values + 2 * 3.5 * values + 2 * 4 * values / t + 2 * 3 * values / t + 5.5 * scores));
  }

  /// Returns the time of an all-reduce over the tensor ranks. Its bytes take the time of a ring; its latency is that of
  /// a tree, up and down.
  double all_reduce(double bytes) const {
    const double t = run_.tensor_parallel_size;
    if (t < 2) return 0;
    const double speed = t > kDevicesPerNode ? constants_.network_bytes_per_second : constants_.nvlink_bytes_per_second;
    return 2 * (t - 1) / t * bytes / speed + 1e-9 * static_cast<double>(constants_.tree_step_ns) * 2 * std::log2(t);
  }

  const MegatronRun& run_;
  const MegatronConstants& constants_;
};

/// Returns the time of the message with an activation from one stage to the next.
double message_seconds(const MegatronRun& run, const MegatronConstants& constants, bool within_node) {
  const double bytes = kHalfBytes * run.micro_batch_size * run.tokens * run.hidden, t = run.tensor_parallel_size;
  if (within_node) return bytes / constants.nvlink_bytes_per_second;
  const double card =
      constants.card_bytes_per_second > 0 ? constants.card_bytes_per_second : constants.network_bytes_per_second;
  if (!run.scatter_gather) return bytes / card;
  return bytes / t / std::min(card, constants.network_bytes_per_second / t) +
         (t - 1) / t * bytes / constants.nvlink_bytes_per_second;
}

void require_size(bool holds, const char* rule, int value) {
  if (!holds) throw InvalidInput("run", rule, std::to_string(value));
}

/// Returns the number of layers to divide evenly over the stages.
int units_of(const MegatronRun& run) { return run.layers + (run.embeddings_count_as_layers ? 2 : 0); }

void check_run(const MegatronRun& run) {
  for (const int size :
       {run.hidden, run.heads, run.layers, run.tokens, run.vocabulary, run.tensor_parallel_size, run.data_parallel_size,
        run.pipeline_parallel_size, run.virtual_stages, run.global_batch_size, run.micro_batch_size})
    require_size(size >= 1, "must have sizes >= 1", size);
  require_size(units_of(run) % (std::int64_t{run.pipeline_parallel_size} * run.virtual_stages) == 0,
               "must have a number of layers (plus 2 if the embeddings count as layers) divisible by the stages",
               units_of(run));
  require_size(!run.embeddings_count_as_layers || run.virtual_stages == 1,
               "must have one stage per rank where embeddings count as layers", run.virtual_stages);
  const std::int64_t samples = std::int64_t{run.data_parallel_size} * run.micro_batch_size;
  require_size(run.global_batch_size % samples == 0, "must have a batch divisible by replicas x micro-batch size",
               run.global_batch_size);
  const std::int64_t stages = std::int64_t{run.pipeline_parallel_size} * run.virtual_stages;
  require_size(stages <= kMaxStagePasses && stages * (run.global_batch_size / samples) <= kMaxStagePasses,
               "must have at most a million stages x micro-batches (try a smaller batch)", run.global_batch_size);
}

}  // namespace

double iteration_flops(const MegatronRun& run) {
  const double b = run.global_batch_size, s = run.tokens, l = run.layers, h = run.hidden, v = run.vocabulary;
  return 96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

Nanoseconds predict_iteration_ns(const MegatronRun& run, const MegatronConstants& constants) {
  check_run(run);
  const int p = run.pipeline_parallel_size, t = run.tensor_parallel_size, d = run.data_parallel_size,
            stages = p * run.virtual_stages;
  const double layers = static_cast<double>(units_of(run)) / stages, h = run.hidden;
  const double end_layers = run.embeddings_count_as_layers ? layers - (p > 1 ? 1 : 2) : layers;  // first and last stage
  const LayerTimes times(run, constants);
  const double launch = 1e-9 * static_cast<double>(constants.launch_ns), computing = times.computing_seconds(),
               sums = times.sums_seconds(), forward = computing + sums;
  const double stage_forward = layers * std::max(forward, launch);
  const double recomputed = run.recomputes ? std::max(forward, launch) : 0;
  const double stage_backward = layers * (std::max(2 * computing + sums, 1.6 * launch) + recomputed);

  const std::int64_t ranks_of_stage = std::int64_t{t} * d;
  const bool within_node = ranks_of_stage <= kDevicesPerNode / p;
  const double message = message_seconds(run, constants, within_node),
               waited = constants.waits_for_messages && p > 1 ? message : 0;
  const TransferCost transfer{.occupancy_ns = constants.waits_for_messages ? 0 : nanoseconds_of(message),
                              .latency_ns = kMessageLatencyNs};
  const auto with_share = [&](double share) {
    return StageTimes{.forward_ns = nanoseconds_of(share * stage_forward + waited),
                      .backward_ns = nanoseconds_of(share * stage_backward + waited),
                      .send_forward = transfer,
                      .send_backward = transfer};
  };
  const StageTimes inner = with_share(1), first = with_share(end_layers / layers);
  StageTimes last = first;
  last.forward_ns += nanoseconds_of(times.head_seconds());
  last.backward_ns += nanoseconds_of(2 * times.head_seconds());

  const double parameters = run.virtual_stages * end_layers * 12.0 * h * h / t,
               embedding = static_cast<double>(run.vocabulary) * h / t;
  const double largest = parameters + embedding;  // on the first and on the last pipeline rank
  const Nanoseconds update = nanoseconds_of(times.by_memory(kOptimizerBytesPerParameter * largest));
  const double ring_speed =
      ranks_of_stage <= kDevicesPerNode ? constants.nvlink_bytes_per_second : constants.network_bytes_per_second / t;
  const Nanoseconds reduction =
      d < 2 ? 0 : nanoseconds_of(2.0 * (d - 1) / d * run.gradient_bytes * largest / ring_speed);

  std::vector<std::vector<StageTimes>> table(stages, {inner});
  table.front() = {first};
  table.back() = {last};
  const ScheduleShape shape{.pipeline_parallel_size = p,
                            .num_micro_batches = run.global_batch_size / (d * run.micro_batch_size),
                            .virtual_stages = run.virtual_stages};
  const Schedule schedule = lower(run.virtual_stages > 1 ? interleaved_one_f_one_b(shape) : one_f_one_b(shape));
  const TableCostModel costs(std::move(table), std::vector<Segment>(stages));
  return simulate_timing(schedule, {.pipeline_parallel_size = p}, costs, 1).iteration_end_ns.front() + reduction +
         update + constants.iteration_ns;
}

}  // namespace frostpipe
