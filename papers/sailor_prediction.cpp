#include "papers/sailor_prediction.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/seconds.h"
#include "simulator/simulate.h"
#include "simulator/table_cost_model.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kMessageLatency = 20'000;
constexpr double kEagerBytes = 4 << 20;
constexpr double kFloatBytes = 4;  // FP32

class Prediction {
 public:
  Prediction(const SailorRun& run, SailorData& data, const SailorConstants& constants)
      : run_(run),
        data_(data),
        constants_(constants),
        p_(static_cast<int>(run.stages.size())),
        d_(static_cast<int>(run.stages.front().replicas.size())),
        m_(static_cast<int>(run.global_batch_size / (std::int64_t{run.micro_batch_size} * d_))) {
    if (m_ < 1) throw InvalidInput(run.name, "must have at least one micro-batch per replica", std::to_string(m_));
    for (const auto& stage : run.stages)
      if (static_cast<int>(stage.replicas.size()) != d_)
        throw InvalidInput(run.name, "must have equally many replicas of each stage",
                           std::to_string(stage.replicas.size()));
  }

  SailorPrediction make() {
    const ParallelLayout layout{.pipeline_parallel_size = p_, .data_parallel_size = d_};
    std::vector<std::vector<StageTimes>> times(p_, std::vector<StageTimes>(d_));
    std::vector<Segment> reduce(p_);
    for (int stage = 0; stage < p_; ++stage) {
      for (int replica = 0; replica < d_; ++replica) times[stage][replica] = stage_times(stage, replica);
      reduce[stage] = {.duration_ns = reduction_ns(stage), .collective_ranks = replicas_of(layout, stage)};
    }
    const Schedule schedule = one_f_one_b_of_deepspeed({.pipeline_parallel_size = p_, .num_micro_batches = m_});
    const Timing timing = simulate_timing(schedule, layout, TableCostModel(std::move(times), std::move(reduce)), 1);
    return {.iteration_ns = timing.iteration_end_ns.front() + (d_ > 1 ? constants_.reduction_overhead_ns : 0),
            .peak_memory_bytes = peak_memory(),
            .is_launch_bound = is_launch_bound_};
  }

 private:
  const SailorRun::Replica& at(int stage, int replica) const { return run_.stages[stage].replicas[replica]; }

  StageTimes stage_times(int stage, int replica) {
    const auto& [device, tensor_ranks] = at(stage, replica);
    double forward = 0, backward = 0, update = 0;
    for (const int layer : run_.stages[stage].layers) {
      const SailorLayerTime time = data_.layer_time(run_.model, device, run_.micro_batch_size, tensor_ranks, layer);
      forward += time.forward;
      backward += time.backward;
      update = std::max(update, time.update);  // every layer has the time of the whole optimizer step
    }
    if (run_.micro_batch_size == 1) is_launch_bound_ |= is_flat(stage, replica);
    return {.forward_ns = nanoseconds_of(forward),
            .backward_ns = nanoseconds_of(backward),
            .send_forward = stage + 1 < p_ ? message(stage, stage, stage + 1, replica) : TransferCost{},
            .send_backward = stage > 0 ? message(stage - 1, stage, stage - 1, replica) : TransferCost{},
            .update_ns = nanoseconds_of(update)};
  }

  /// Returns whether a forward of two samples takes less than 1.2 times as long as that of one.
  bool is_flat(int stage, int replica) {
    double one = 0, two = 0;
    for (const int layer : run_.stages[stage].layers) {
      one += data_.layer_time(run_.model, at(stage, replica).device, 1, at(stage, replica).tensor_parallel_size, layer)
                 .forward;
      two += data_.layer_time(run_.model, at(stage, replica).device, 2, at(stage, replica).tensor_parallel_size, layer)
                 .forward;
    }
    return two < 1.2 * one;
  }

  /// Returns the cost of the message across the cut after stage `lower`.
  TransferCost message(int lower, int from, int to, int replica) const {
    const double bytes =
        static_cast<double>(data_.layer_size(run_.model, 1, run_.stages[lower].layers.back()).output_bytes) *
        run_.micro_batch_size;
    const double speed = data_.link_bytes_per_second(at(from, replica).device, at(to, replica).device, 1, bytes);
    return {.occupancy_ns = nanoseconds_of(bytes / speed),
            .latency_ns = kMessageLatency,
            .holds_both = bytes / at(from, replica).tensor_parallel_size > kEagerBytes};
  }

  Nanoseconds reduction_ns(int stage) const {
    if (d_ < 2) return 0;
    double slowest = 0;
    for (int replica = 0; replica < d_; ++replica) {
      const auto &one = at(stage, replica), &next = at(stage, (replica + 1) % d_);
      double bytes = 0;
      for (const int layer : run_.stages[stage].layers)
        bytes += static_cast<double>(data_.layer_size(run_.model, one.tensor_parallel_size, layer).parameter_bytes);
      const double speed = data_.link_bytes_per_second(one.device, next.device, one.tensor_parallel_size, bytes);
      slowest = std::max(slowest, bytes * one.tensor_parallel_size / speed);
    }
    return nanoseconds_of(2.0 * (d_ - 1) / d_ * slowest);
  }

  Bytes peak_memory() const {
    double peak = 0;
    for (int stage = 0; stage < p_; ++stage) {
      for (int replica = 0; replica < d_; ++replica) {
        double parameters = 0, stored = 0;
        for (const int layer : run_.stages[stage].layers) {
          const SailorLayerSize& size = data_.layer_size(run_.model, at(stage, replica).tensor_parallel_size, layer);
          parameters += static_cast<double>(size.parameter_bytes) / kFloatBytes;
          stored += static_cast<double>(size.stored_bytes) * run_.micro_batch_size;
        }
        const double context = at(stage, replica).device.starts_with("GH") ? constants_.context_bytes_gh200
                                                                           : constants_.context_bytes_other;
        peak = std::max(peak, constants_.bytes_per_parameter_value * parameters +
                                  constants_.stored_factor * stored * std::min(p_ - stage, m_) + context);
      }
    }
    return static_cast<Bytes>(peak);
  }

  const SailorRun& run_;
  SailorData& data_;
  const SailorConstants& constants_;
  int p_, d_, m_;
  bool is_launch_bound_ = false;
};

}  // namespace

SailorPrediction predict(const SailorRun& run, SailorData& data, const SailorConstants& constants) {
  return Prediction(run, data, constants).make();
}

}  // namespace frostpipe
