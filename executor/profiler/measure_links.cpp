#include "executor/profiler/measure_links.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "profiles/link_fit.h"
#include "profiles/statistics.h"

namespace frostpipe {
namespace {

/// One of the things that a link is used for: what moves between ranks, and how long that took on this rank.
struct LinkUse {
  std::string what;
  std::vector<Bytes> sizes;
  double wire_share;  // of a tensor's bytes, those that pass a link
  int judge;          // the rank whose figures count
  std::function<Nanoseconds(const at::Tensor&)> transfer;
};

/// Half the time of a round trip between two ranks; 0 on others.
Nanoseconds time_message(Communicator& communicator, ComputeDevice& device, const at::Tensor& tensor,
                         std::pair<int, int> ranks) {
  const int self = communicator.rank();
  if (self != ranks.first && self != ranks.second) return 0;
  const int other = self == ranks.first ? ranks.second : ranks.first;
  const Nanoseconds begin = device.now_ns();
  for (const bool sends : {self == ranks.first, self == ranks.second}) {
    if (sends) {
      communicator.weight_transfer_group().send(tensor, other, 0, "link measurement").wait();
    } else {
      communicator.weight_transfer_group().receive(tensor, other, 0, "link measurement").wait();
    }
  }
  device.synchronize();
  return (device.now_ns() - begin) / 2;
}

/// Over the group's ranks; 0 on others.
Nanoseconds time_all_reduce(Communicator& communicator, Group& group, ComputeDevice& device, const at::Tensor& tensor) {
  communicator.control_group().barrier();
  if (group.ranks().empty()) return 0;
  const Nanoseconds begin = device.now_ns();
  group.all_reduce_sum({tensor}, "link measurement");
  device.synchronize();
  return device.now_ns() - begin;
}

/// Rounds over all sizes, so that each is made of moments all over the measuring time; in a round, each size takes some
/// milliseconds. The figures are the judge's, on all ranks. What makes no sense is measured again, twice at most.
Link measure_link(Communicator& communicator, const at::TensorOptions& options, bool quick, const LinkUse& use) {
  constexpr double kNanosecondsPerSize = 5e6;
  const int num_rounds = quick ? 5 : 11;
  std::vector<at::Tensor> tensors;
  std::vector<int> repetitions;
  const auto of_judge = [&](Nanoseconds time) {
    return communicator.sum({communicator.rank() == use.judge ? static_cast<double>(time) : 0.0}).front();
  };
  for (const Bytes bytes : use.sizes) {
    tensors.push_back(at::zeros({bytes / 4}, options.dtype(at::kFloat)));
    use.transfer(tensors.back());  // the first one connects, and touches memory
    repetitions.push_back(static_cast<int>(
        std::clamp(kNanosecondsPerSize / std::max(1.0, of_judge(use.transfer(tensors.back()))), 1.0, 50.0)));
  }
  const auto measured_round = [&] {
    LinkRound round;
    for (std::size_t i = 0; i < use.sizes.size(); ++i) {
      std::vector<Nanoseconds> times;
      for (int repetition = 0; repetition < repetitions[i]; ++repetition) times.push_back(use.transfer(tensors[i]));
      round.push_back({static_cast<Bytes>(use.wire_share * static_cast<double>(use.sizes[i])),
                       static_cast<Nanoseconds>(of_judge(quantile(std::move(times), 0.5)))});
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

constexpr Bytes kSmall = 8, kMebibyte = 1 << 20;

/// What links are measured with.
struct Bench {
  Communicator& communicator;
  ComputeDevice& device;
  const at::TensorOptions& options;
  bool quick;
};

Link measure_messages(const Bench& bench, std::pair<int, int> ranks) {
  return measure_link(bench.communicator, bench.options, bench.quick,
                      {.what = fmt::format("messages between ranks {} and {}", ranks.first, ranks.second),
                       .sizes = {kSmall, kMebibyte / 4, kMebibyte, 4 * kMebibyte},
                       .wire_share = 1,
                       .judge = ranks.first,
                       .transfer = [&](const at::Tensor& tensor) {
                         return time_message(bench.communicator, bench.device, tensor, ranks);
                       }});
}

/// Over these ranks, at least two.
Link measure_all_reduces(const Bench& bench, const std::vector<int>& ranks) {
  Phase phase;
  phase.layout = {.data_parallel_size = static_cast<int>(ranks.size()), .placement = ranks};
  phase.partition = {{0, 1}};
  ActiveGroups groups = bench.communicator.form(phase);
  const double d = static_cast<double>(ranks.size());
  return measure_link(bench.communicator, bench.options, bench.quick,
                      {.what = fmt::format("all-reduces over {} ranks", ranks.size()),
                       .sizes = {kSmall, kMebibyte, 4 * kMebibyte, 16 * kMebibyte},
                       .wire_share = 2 * (d - 1) / d,
                       .judge = ranks.front(),
                       .transfer = [&](const at::Tensor& tensor) {
                         return time_all_reduce(bench.communicator, groups.replicas, bench.device, tensor);
                       }});
}

/// Of every two nodes' first ranks, the link that is slower for a mebibyte than all others.
Link measure_slowest_messages(const Bench& bench, const std::vector<int>& first_ranks) {
  std::vector<Link> links;
  for (std::size_t one = 0; one < first_ranks.size(); ++one)
    for (std::size_t other = one + 1; other < first_ranks.size(); ++other)
      links.push_back(measure_messages(bench, {first_ranks[one], first_ranks[other]}));
  return *std::max_element(links.begin(), links.end(), [](const Link& a, const Link& b) {
    return a.latency_ns + transfer_occupancy_ns(a, kMebibyte) < b.latency_ns + transfer_occupancy_ns(b, kMebibyte);
  });
}

}  // namespace

Cluster measure_links(Communicator& communicator, ComputeDevice& device, const at::TensorOptions& options,
                      const std::optional<Bytes>& memory_limit_bytes, bool quick, const std::vector<int>& nodes) {
  std::vector<std::vector<int>> ranks_of_nodes;
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    if (nodes[rank] == static_cast<int>(ranks_of_nodes.size())) ranks_of_nodes.emplace_back();
    ranks_of_nodes[nodes[rank]].push_back(rank);
  }
  std::vector<int> first_ranks;
  for (const std::vector<int>& ranks : ranks_of_nodes) first_ranks.push_back(ranks.front());
  Cluster cluster{.name = first_ranks.size() == 1
                              ? fmt::format("{} local ranks", communicator.world_size())
                              : fmt::format("{} ranks on {} hosts", communicator.world_size(), first_ranks.size()),
                  .devices = {},
                  .intra_node = {},
                  .inter_node = {}};
  for (const int node : nodes)
    cluster.devices.push_back({.type = device.type(), .node = node, .memory_limit_bytes = memory_limit_bytes});
  const Bench bench{communicator, device, options, quick};
  const auto several = std::find_if(ranks_of_nodes.begin(), ranks_of_nodes.end(),
                                    [](const std::vector<int>& ranks) { return ranks.size() > 1; });
  if (several != ranks_of_nodes.end())
    cluster.intra_node = {.point_to_point = measure_messages(bench, {several->at(0), several->at(1)}),
                          .collective = measure_all_reduces(bench, *several)};
  if (first_ranks.size() > 1)
    cluster.inter_node = {.point_to_point = measure_slowest_messages(bench, first_ranks),
                          .collective = measure_all_reduces(bench, first_ranks)};
  if (first_ranks.size() == 1) cluster.inter_node = cluster.intra_node;
  if (several == ranks_of_nodes.end()) cluster.intra_node = cluster.inter_node;
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
