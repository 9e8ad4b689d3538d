#include "executor/profiler/measure_links.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "profiles/link_fit.h"
#include "profiles/statistics.h"

namespace frostpipe {
namespace {

/// One of the things that a link is used for: what moves between ranks, and how long that took on this rank.
struct LinkUse {
  const char* what;
  std::vector<Bytes> sizes;
  double wire_share;  // of a tensor's bytes, those that pass a link
  std::function<Nanoseconds(const at::Tensor&)> transfer;
};

/// Half the time of a round trip between ranks 0 and 1.
Nanoseconds time_message(Communicator& communicator, ComputeDevice& device, const at::Tensor& tensor) {
  if (communicator.rank() > 1) return 0;
  const int other = 1 - communicator.rank();
  const Nanoseconds begin = device.now_ns();
  for (const bool sends : {communicator.rank() == 0, communicator.rank() == 1}) {
    if (sends) {
      communicator.weight_transfer_group().send(tensor, other, 0, "link measurement").wait();
    } else {
      communicator.weight_transfer_group().receive(tensor, other, 0, "link measurement").wait();
    }
  }
  device.synchronize();
  return (device.now_ns() - begin) / 2;
}

Nanoseconds time_all_reduce(Communicator& communicator, ComputeDevice& device, const at::Tensor& tensor) {
  communicator.control_group().barrier();
  const Nanoseconds begin = device.now_ns();
  communicator.weight_transfer_group().all_reduce_sum({tensor}, "link measurement");
  device.synchronize();
  return device.now_ns() - begin;
}

/// Rounds over all sizes, so that each is made of moments all over the measuring time; in a round, each size takes some
/// milliseconds. The figures are rank 0's, on all ranks. What makes no sense is measured again, twice at most.
Link measure_link(Communicator& communicator, const at::TensorOptions& options, bool quick, const LinkUse& use) {
  constexpr double kNanosecondsPerSize = 5e6;
  const int num_rounds = quick ? 5 : 11;
  std::vector<at::Tensor> tensors;
  std::vector<int> repetitions;
  const auto of_first_rank = [&](Nanoseconds time) {
    return communicator.sum({communicator.rank() == 0 ? static_cast<double>(time) : 0.0}).front();
  };
  for (const Bytes bytes : use.sizes) {
    tensors.push_back(at::zeros({bytes / 4}, options.dtype(at::kFloat)));
    use.transfer(tensors.back());  // the first one connects, and touches memory
    repetitions.push_back(static_cast<int>(
        std::clamp(kNanosecondsPerSize / std::max(1.0, of_first_rank(use.transfer(tensors.back()))), 1.0, 50.0)));
  }
  const auto measured_round = [&] {
    LinkRound round;
    for (std::size_t i = 0; i < use.sizes.size(); ++i) {
      std::vector<Nanoseconds> times;
      for (int repetition = 0; repetition < repetitions[i]; ++repetition) times.push_back(use.transfer(tensors[i]));
      round.push_back({static_cast<Bytes>(use.wire_share * static_cast<double>(use.sizes[i])),
                       static_cast<Nanoseconds>(of_first_rank(quantile(std::move(times), 0.5)))});
    }
    return round;
  };
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    std::vector<LinkRound> rounds;
    for (int round = 0; round < num_rounds; ++round) rounds.push_back(measured_round());
    try {
      return fit_link(rounds, use.what);
    } catch (const RuntimeFailure&) {  // on all ranks alike
      if (attempt == kAttempts) throw;
    }
  }
}

}  // namespace

Cluster measure_links(Communicator& communicator, ComputeDevice& device, const at::TensorOptions& options,
                      const std::optional<Bytes>& memory_limit_bytes, bool quick) {
  Cluster cluster{.name = fmt::format("{} local ranks", communicator.world_size()),
                  .devices = {},
                  .intra_node = {},
                  .inter_node = {}};
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    cluster.devices.push_back({.type = device.type(), .node = 0, .memory_limit_bytes = memory_limit_bytes});
  }
  if (communicator.world_size() > 1) {
    constexpr Bytes kSmall = 8, kMebibyte = 1 << 20;
    const double d = communicator.world_size();
    cluster.intra_node.point_to_point = measure_link(
        communicator, options, quick,
        {.what = "messages between ranks",
         .sizes = {kSmall, kMebibyte / 4, kMebibyte, 4 * kMebibyte},
         .wire_share = 1,
         .transfer = [&](const at::Tensor& tensor) { return time_message(communicator, device, tensor); }});
    cluster.intra_node.collective = measure_link(
        communicator, options, quick,
        {.what = "all-reduces",
         .sizes = {kSmall, kMebibyte, 4 * kMebibyte, 16 * kMebibyte},
         .wire_share = 2 * (d - 1) / d,
         .transfer = [&](const at::Tensor& tensor) { return time_all_reduce(communicator, device, tensor); }});
  }
  cluster.inter_node = cluster.intra_node;
  return cluster;
}

Nanoseconds measure_regrouping(Communicator& communicator, ComputeDevice& device) {
  const int world_size = communicator.world_size();
  std::vector<double> times;
  for (int round = 0; round < 4; ++round) {
    const bool pipeline = round % 2 == 0;
    Phase phase;
    phase.layout = {.pipeline_parallel_size = pipeline ? world_size : 1,
                    .data_parallel_size = pipeline ? 1 : world_size};
    for (int stage = 0; stage < phase.layout.pipeline_parallel_size; ++stage)
      phase.partition.push_back({stage, stage + 1});
    communicator.control_group().barrier();
    const Nanoseconds begin = device.now_ns();
    const ActiveGroups groups = communicator.form(phase);
    communicator.control_group().barrier();
    times.push_back(static_cast<double>(device.now_ns() - begin));
  }
  std::sort(times.begin(), times.end());
  return static_cast<Nanoseconds>(communicator.sum({times[1]}).front() / world_size);
}

}  // namespace frostpipe
