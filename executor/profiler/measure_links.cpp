#include "executor/profiler/measure_links.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "executor/profiler/pair_rounds.h"
#include "profiles/link_fit.h"

namespace frostpipe {
namespace {

using RankPair = std::pair<int, int>;

/// A measurement of several links at the same time.
struct LinkUse {
  std::vector<std::string> what;  // name of each link
  std::vector<int> timing_ranks;  // by link: the rank whose times count
  std::vector<Bytes> sizes;       // ascending; a brief measurement takes those after the third only if they are quick
  double wire_share;              // bytes that pass a link, divided by those of the tensor
  std::function<Nanoseconds(const at::Tensor&)> transfer;  // sends a tensor, and returns its time on this rank
};

/// The resources and options of a measurement.
struct Bench {
  Communicator& communicator;
  ComputeDevice& device;
  const at::TensorOptions& options;
  bool quick;
  bool brief = false;  // one of many measurements: slow links take as few sizes as possible
};

/// Returns half the round-trip time between the two ranks of this rank's pair; 0 on ranks without a pair.
Nanoseconds time_message(const Bench& bench, const at::Tensor& tensor, const std::vector<RankPair>& pairs) {
  auto& [communicator, device, options, quick, brief] = bench;
  const int self = communicator.rank();
  const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                 [&](const RankPair& one) { return one.first == self || one.second == self; });
  if (pair == pairs.end()) return 0;
  const int other = self == pair->first ? pair->second : pair->first;
  const Nanoseconds begin = device.now_ns();
  for (const bool sends : {self == pair->first, self == pair->second}) {
    if (sends) {
      communicator.weight_transfer_group().send(tensor, other, 0, "link measurement").wait();
    } else {
      communicator.weight_transfer_group().receive(tensor, other, 0, "link measurement").wait();
    }
  }
  device.synchronize();
  return (device.now_ns() - begin) / 2;
}

/// Returns the time of an all-reduce over this rank's group; 0 on ranks without a group.
Nanoseconds time_all_reduce(const Bench& bench, Group& group, const at::Tensor& tensor) {
  bench.communicator.control_group().barrier();
  if (group.ranks().empty()) return 0;
  const Nanoseconds begin = bench.device.now_ns();
  group.all_reduce_sum({tensor}, "link measurement");
  bench.device.synchronize();
  return bench.device.now_ns() - begin;
}

/// Returns, on all ranks, the times of each link's timing rank.
std::vector<double> times_of_timing_ranks(const Bench& bench, const LinkUse& use, Nanoseconds time) {
  std::vector<double> times;
  for (const int timing_rank : use.timing_ranks)
    times.push_back(bench.communicator.rank() == timing_rank ? static_cast<double>(time) : 0.0);
  return bench.communicator.sum(std::move(times));
}

/// A tensor of one of the sizes, and the number of times that it is sent in a round.
struct SizedTransfer {
  at::Tensor tensor;
  int repetitions = 1;
};

/// Makes the tensors, with so many repetitions that each takes some milliseconds of a round. Adds the time of a round
/// to `round_ns`.
std::vector<SizedTransfer> sized_transfers_of(const Bench& bench, const LinkUse& use, double& round_ns) {
  constexpr double kNanosecondsPerSize = 5e6, kLong = 20e6;
  std::vector<SizedTransfer> transfers;
  for (const Bytes bytes : use.sizes) {
    SizedTransfer sized{at::zeros({bytes / 4}, bench.options.dtype(at::kFloat))};
    use.transfer(sized.tensor);  // the first transfer connects, and touches memory
    const std::vector<double> times = times_of_timing_ranks(bench, use, use.transfer(sized.tensor));
    const double slowest = std::max(1.0, *std::max_element(times.begin(), times.end()));
    sized.repetitions = static_cast<int>(std::clamp(kNanosecondsPerSize / slowest, 1.0, 50.0));
    round_ns += sized.repetitions * slowest;
    transfers.push_back(std::move(sized));
    if (bench.brief && transfers.size() >= 3 && slowest > kLong) break;
  }
  return transfers;
}

/// Measures in rounds over all sizes, so that each figure averages over the whole measuring time. Returns the timing
/// ranks' figures on all ranks, by link. Inconsistent figures are measured again, twice at most. Slow links, which vary
/// less than the disturbances, take fewer rounds.
std::vector<Link> measure(const Bench& bench, const LinkUse& use) {
  constexpr double kLongRound = 0.1e9;
  double round_ns = 0;
  const std::vector<SizedTransfer> transfers = sized_transfers_of(bench, use, round_ns);
  const int num_rounds = bench.quick || round_ns > kLongRound ? 5 : 11;
  const std::size_t num_links = use.timing_ranks.size();
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    std::vector<std::vector<LinkRound>> rounds(num_links, std::vector<LinkRound>(num_rounds));
    for (int round = 0; round < num_rounds; ++round) {
      for (const SizedTransfer& sized : transfers) {
        std::vector<Nanoseconds> times;
        for (int i = 0; i < sized.repetitions; ++i) times.push_back(use.transfer(sized.tensor));
        const std::vector<double> times_of_links = times_of_timing_ranks(bench, use, quantile(std::move(times), 0.5));
        const auto on_wire = static_cast<Bytes>(use.wire_share * static_cast<double>(sized.tensor.nbytes()));
        for (std::size_t link = 0; link < num_links; ++link)
          rounds[link][round].push_back({on_wire, static_cast<Nanoseconds>(times_of_links[link])});
      }
    }
    try {
      std::vector<Link> links;
      for (std::size_t link = 0; link < num_links; ++link) links.push_back(fit_link(rounds[link], use.what[link]));
      return links;
    } catch (const RuntimeFailure&) {  // thrown on all ranks alike
      if (attempt == kAttempts) throw;
    }
  }
}

constexpr Bytes kSmall = 8, kMebibyte = 1 << 20;

/// Measures messages between the two ranks of each pair, all pairs at the same time. No rank may be in two pairs.
std::vector<Link> measure_messages(const Bench& bench, const std::vector<RankPair>& pairs) {
  LinkUse use{.what = {},
              .timing_ranks = {},
              .sizes = {kSmall, kMebibyte / 4, kMebibyte, 4 * kMebibyte},
              .wire_share = 1,
              .transfer = [&](const at::Tensor& tensor) { return time_message(bench, tensor, pairs); }};
  for (const auto& [one, other] : pairs) {
    use.what.push_back(fmt::format("messages between ranks {} and {}", one, other));
    use.timing_ranks.push_back(one);
  }
  return measure(bench, use);
}

/// Measures all-reduces over the ranks of each group, all groups at the same time. Groups must have one size of at
/// least two, and no rank may be in two of them.
std::vector<Link> measure_all_reduces(const Bench& bench, const std::vector<std::vector<int>>& groups) {
  Phase phase;
  const std::size_t size = groups.front().size();
  phase.layout = {.pipeline_parallel_size = static_cast<int>(groups.size()),
                  .data_parallel_size = static_cast<int>(size)};
  for (int stage = 0; stage < phase.layout.pipeline_parallel_size; ++stage)
    phase.partition.push_back({stage, stage + 1});
  for (const std::vector<int>& ranks : groups)
    phase.layout.placement.insert(phase.layout.placement.end(), ranks.begin(), ranks.end());
  ActiveGroups formed = bench.communicator.form(phase);
  const auto d = static_cast<double>(size);
  LinkUse use{.what = {},
              .timing_ranks = {},
              .sizes = {kSmall, kMebibyte, 4 * kMebibyte, 16 * kMebibyte},
              .wire_share = 2 * (d - 1) / d,
              .transfer = [&](const at::Tensor& tensor) { return time_all_reduce(bench, formed.replicas, tensor); }};
  for (const std::vector<int>& ranks : groups) {
    use.what.push_back(fmt::format("all-reduces over ranks {}", fmt::join(ranks, " ")));
    use.timing_ranks.push_back(ranks.front());
  }
  return measure(bench, use);
}

Nanoseconds mebibyte_ns(const Link& link) { return link.latency_ns + transfer_occupancy_ns(link, kMebibyte); }

/// The node pairs whose messages are clearly faster than those of the worst pair, and the link of the worst pair.
struct MeasuredPairs {
  std::vector<NodePair> better;
  Link worst;
};

/// Measures the node pairs by messages of a mebibyte between the nodes' first ranks. All-reduces are measured over the
/// better pairs only.
MeasuredPairs measure_pairs(Bench bench, const std::vector<int>& first_ranks) {
  bench.brief = first_ranks.size() > 2;
  constexpr double kBetter = 0.75;  // share of the worst pair's time
  const auto rounds = rounds_of_pairs(static_cast<int>(first_ranks.size()));
  const auto ranks_of = [&](const RankPair& nodes) {
    return RankPair{first_ranks[nodes.first], first_ranks[nodes.second]};
  };
  std::map<RankPair, LinkClass> measured;
  for (const auto& round : rounds) {
    std::vector<RankPair> pairs;
    for (const RankPair& nodes : round) pairs.push_back(ranks_of(nodes));
    const std::vector<Link> links = measure_messages(bench, pairs);
    for (std::size_t i = 0; i < round.size(); ++i) measured[round[i]].point_to_point = links[i];
  }
  const auto mebibyte_of = [](const auto& pair) { return mebibyte_ns(pair.second.point_to_point); };
  MeasuredPairs result;
  result.worst = std::ranges::max_element(measured, {}, mebibyte_of)->second.point_to_point;
  std::erase_if(measured, [&](const auto& pair) {
    return static_cast<double>(mebibyte_of(pair)) > kBetter * static_cast<double>(mebibyte_ns(result.worst));
  });
  for (const auto& round : rounds) {
    std::vector<std::vector<int>> groups;
    std::vector<RankPair> better;
    for (const RankPair& nodes : round) {
      if (!measured.contains(nodes)) continue;
      better.push_back(nodes);
      groups.push_back({ranks_of(nodes).first, ranks_of(nodes).second});
    }
    if (better.empty()) continue;
    const std::vector<Link> links = measure_all_reduces(bench, groups);
    for (std::size_t i = 0; i < better.size(); ++i) measured[better[i]].collective = links[i];
  }
  for (const auto& [nodes, links] : measured) result.better.push_back({nodes.first, nodes.second, links});
  return result;
}

/// Measures the network card that a node's ranks share: the bandwidth that several of them have together when they send
/// to another node's ranks. Returns nothing if they do not slow each other down, or if no two nodes have several ranks.
std::optional<SharedLink> measure_card(const Bench& bench, const std::vector<std::vector<int>>& ranks_of_nodes) {
  constexpr double kUndisturbed = 0.75;  // share of the bandwidth of a single rank
  std::vector<std::vector<int>> nodes;
  for (const std::vector<int>& ranks : ranks_of_nodes)
    if (ranks.size() > 1) nodes.push_back(ranks);
  if (nodes.size() < 2) return std::nullopt;
  std::vector<RankPair> pairs;
  for (std::size_t i = 0; i < std::min(nodes[0].size(), nodes[1].size()); ++i)
    pairs.emplace_back(nodes[0][i], nodes[1][i]);
  const Link alone = measure_messages(bench, {pairs.front()}).front();
  std::int64_t together = 0;
  for (const Link& link : measure_messages(bench, pairs)) together += link.bandwidth_bytes_per_second;
  const auto of_all = static_cast<double>(pairs.size()) * static_cast<double>(alone.bandwidth_bytes_per_second);
  if (together == 0 || static_cast<double>(together) > kUndisturbed * of_all) return std::nullopt;
  return SharedLink{.name = "network card", .nodes = 1, .bandwidth_bytes_per_second = together};
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
                  .inter_node = {},
                  .node_pairs = {}};
  for (const int node : nodes)
    cluster.devices.push_back({.type = device.type(), .node = node, .memory_limit_bytes = memory_limit_bytes});
  const Bench bench{communicator, device, options, quick};
  const auto several = std::find_if(ranks_of_nodes.begin(), ranks_of_nodes.end(),
                                    [](const std::vector<int>& ranks) { return ranks.size() > 1; });
  if (several != ranks_of_nodes.end())
    cluster.intra_node = {.point_to_point = measure_messages(bench, {{several->at(0), several->at(1)}}).front(),
                          .collective = measure_all_reduces(bench, {*several}).front()};
  if (first_ranks.size() > 1) {
    MeasuredPairs pairs = measure_pairs(bench, first_ranks);
    cluster.node_pairs = std::move(pairs.better);
    cluster.inter_node = {.point_to_point = pairs.worst,
                          .collective = measure_all_reduces(bench, {first_ranks}).front()};
    if (device.torch_device().is_cpu()) cluster.communication.all_reduce = "direct";
    if (auto card = measure_card(bench, ranks_of_nodes)) cluster.shared_links = {*std::move(card)};
  }
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

std::int64_t measure_new_memory(Communicator& communicator, ComputeDevice& device) {
  constexpr Bytes kBytes = 32 * kMebibyte;
  std::vector<Nanoseconds> times;
  for (int round = 0; round < 5; ++round) {
    device.release_kept_memory();
    communicator.control_group().barrier();
    const Nanoseconds begin = device.now_ns();
    at::Tensor tensor = at::empty({kBytes / 4}, at::TensorOptions(at::kFloat).device(device.torch_device()));
    const auto fill = [&] {
      tensor.fill_(1);
      device.synchronize();
      return device.now_ns();
    };
    const Nanoseconds filled = fill(), filled_again = fill();
    times.push_back((filled - begin) - (filled_again - filled));
  }
  std::vector<double> of_ranks(communicator.world_size(), 0.0);
  of_ranks[communicator.rank()] = static_cast<double>(quantile(std::move(times), 0.5));
  of_ranks = communicator.sum(std::move(of_ranks));
  const double slowest_ns = *std::max_element(of_ranks.begin(), of_ranks.end());
  return slowest_ns < 1 ? 0 : static_cast<std::int64_t>(static_cast<double>(kBytes) * 1e9 / slowest_ns);
}

}  // namespace frostpipe
