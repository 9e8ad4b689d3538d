#include "serving/planner/pipeline_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace frostpipe {
namespace {

/// Pipelines with more pools than this have different classes in adjacent pools.
constexpr int kMaxPartitionsOfAnyClasses = 2;

/// Prefix sums of a model's times on a virtual device: compute_ns(first, end, batch) takes constant time.
class BlockSums {
 public:
  BlockSums(const ServingProfile& profile, const BlockTimes& times) : times_(times) {
    sums_.assign(num_blocks(profile) + 1, std::vector<Nanoseconds>(largest_batch(), 0));
    for (int block = 0; block < num_blocks(profile); ++block)
      for (int b = 0; b < largest_batch(); ++b) sums_[block + 1][b] = sums_[block][b] + times.forward_ns[block][b];
  }
  int share() const { return times_.share; }
  int largest_batch() const { return frostpipe::largest_batch(times_); }
  Nanoseconds compute_ns(int first, int end, int batch) const {
    return sums_[end][batch - 1] - sums_[first][batch - 1];
  }
  Bytes working_bytes(int first, int end, int batch) const {
    Bytes most = 0;
    if (!times_.working_bytes.empty())
      for (int block = first; block < end; ++block) most = std::max(most, times_.working_bytes[block][batch - 1]);
    return most;
  }

 private:
  const BlockTimes& times_;
  std::vector<std::vector<Nanoseconds>> sums_;
};

/// Enumerates every pipeline, from its first pool on.
class Enumeration {
 public:
  Enumeration(const ServingProblem& problem, const ModelToServe& model, double building)
      : problem_(problem), model_(model), building_(building) {
    for (const auto& device_class : problem.classes) {
      auto& of_class = times_.emplace_back();
      for (const int share : measured_shares(model.profile, device_class.name))
        if (share <= problem.max_share)
          of_class.emplace_back(model.profile, *find_times(model.profile, device_class.name, share));
    }
  }

  std::vector<CandidatePipeline> run() {
    for (int batch = 1; batch <= problem_.max_requests; ++batch) {
      CandidatePipeline start{.batch_size = batch,
                              .batch_building_ns = batch_building_ns(batch, building_, problem_.margins)};
      budget_ns_ = latency_budget_ns(model_.objective_ns, problem_.margins) - start.batch_building_ns;
      if (budget_ns_ > 0) extend(start, 0, 0);
    }
    std::vector<CandidatePipeline> all;
    for (auto& [classes, group] : kept_)
      for (auto& candidate : group) all.push_back(std::move(candidate));
    return all;
  }

 private:
  void extend(const CandidatePipeline& front, int first, Nanoseconds used_ns) {
    const int end_of_model = num_blocks(model_.profile);
    if (first == end_of_model) return keep(front);
    const int pools_left = problem_.max_partitions - static_cast<int>(front.pools.size());
    if (pools_left == 0) return;
    for (int k = 0; k < static_cast<int>(problem_.classes.size()); ++k) {
      for (const BlockSums& times : times_[k]) {
        if (front.batch_size > times.largest_batch()) continue;
        for (int end = pools_left == 1 ? end_of_model : first + 1; end <= end_of_model; ++end) {
          const Nanoseconds used = used_ns + hop_ns(front, k) + times.compute_ns(first, end, front.batch_size);
          if (used > budget_ns_) break;  // a longer pool takes longer
          if (!fits(k, times, first, end, front.batch_size)) break;
          if (would_be_one_pool(front, k, times, end)) continue;
          CandidatePipeline next = front;
          next.pools.push_back({.first_block = first, .end_block = end, .device_class = k, .share = times.share()});
          next.pools.back().requests_per_second =
              1e9 * front.batch_size / static_cast<double>(times.compute_ns(first, end, front.batch_size));
          limit_by_cards(next);
          extend(next, end, used);
        }
      }
    }
  }

  /// Returns the time of a batch from the last pool to a next pool of class k.
  Nanoseconds hop_ns(const CandidatePipeline& front, int k) const {
    return front.pools.empty() ? 0 : problem_.latency_ns + front.batch_size * transfer_into(front, k);
  }

  Nanoseconds transfer_into(const CandidatePipeline& front, int k) const {
    const CandidatePool& last = front.pools.back();
    return transfer_ns(problem_.classes[last.device_class], problem_.classes[k],
                       model_.profile.cut_bytes[last.end_block - 1]);
  }

  /// Limits the throughputs of the last two pools by their network cards, both of which the last pool's input occupies.
  void limit_by_cards(CandidatePipeline& pipeline) const {
    if (pipeline.pools.size() < 2) return;
    CandidatePool &to = pipeline.pools.back(), &from = *(pipeline.pools.end() - 2);
    const auto occupied =
        static_cast<double>(transfer_ns(problem_.classes[from.device_class], problem_.classes[to.device_class],
                                        model_.profile.cut_bytes[from.end_block - 1]));
    if (occupied == 0) return;
    for (CandidatePool* pool : {&from, &to}) {
      const int sharers = pool->share * problem_.classes[pool->device_class].devices_per_server;
      pool->requests_per_second = std::min(pool->requests_per_second, 1e9 / occupied / sharers);
    }
  }

  bool fits(int k, const BlockSums& times, int first, int end, int batch) const {
    const auto limit = problem_.memory_limit_bytes.empty() ? std::nullopt : problem_.memory_limit_bytes[k];
    if (!limit) return true;
    Bytes needed = times.working_bytes(first, end, batch);
    for (int block = first; block < end; ++block) needed += model_.profile.weight_bytes[block];
    return needed * times.share() <= *limit;
  }

  /// Returns whether to leave out a next pool of class k because it could be one pool with the last one. Two adjacent
  /// pools of one class are no better than one pool on the devices of both, which computes as much and sends less. If
  /// there are many pipelines, they are left out unless memory requires them.
  bool would_be_one_pool(const CandidatePipeline& front, int k, const BlockSums& times, int end) const {
    if (problem_.max_partitions <= kMaxPartitionsOfAnyClasses || front.pools.empty()) return false;
    const CandidatePool& last = front.pools.back();
    return last.device_class == k && fits(k, times, last.first_block, end, front.batch_size);
  }

  void keep(const CandidatePipeline& candidate) {
    std::vector<int> classes;
    for (const auto& pool : candidate.pools) classes.push_back(pool.device_class);
    auto& group = kept_[classes];
    for (const auto& other : group)
      if (dominates(other, candidate)) return;
    std::erase_if(group, [&](const CandidatePipeline& other) { return dominates(candidate, other); });
    group.push_back(candidate);
  }

  const ServingProblem& problem_;
  const ModelToServe& model_;
  double building_;
  std::vector<std::vector<BlockSums>> times_;  // by class
  Nanoseconds budget_ns_ = 0;
  std::map<std::vector<int>, std::vector<CandidatePipeline>> kept_;
};

/// Returns the least latency of a single request without any limit on latency.
Nanoseconds least_latency_ns(ServingProblem problem, ModelToServe model) {
  problem.margins.objective_fraction = 0;
  problem.max_requests = 1;
  Nanoseconds low = 0, high = 1'000'000'000'000;
  while (high - low > std::max<Nanoseconds>(1, high / 1000)) {
    model.objective_ns = low + (high - low) / 2;
    (pipeline_candidates(problem, model, 0).empty() ? low : high) = model.objective_ns;
  }
  return high;
}

}  // namespace

Nanoseconds transfer_ns(const DeviceClass& from, const DeviceClass& to, Bytes bytes) {
  return std::max(transfer_occupancy_ns({.bandwidth_bytes_per_second = from.bandwidth_bytes_per_second}, bytes),
                  transfer_occupancy_ns({.bandwidth_bytes_per_second = to.bandwidth_bytes_per_second}, bytes));
}

bool dominates(const CandidatePipeline& one, const CandidatePipeline& other) {
  if (one.pools.size() != other.pools.size()) return false;
  for (std::size_t i = 0; i < one.pools.size(); ++i) {
    const CandidatePool &mine = one.pools[i], &others = other.pools[i];
    if (mine.device_class != others.device_class || mine.share % others.share != 0) return false;
    if (mine.requests_per_second * (mine.share / others.share) < others.requests_per_second) return false;
  }
  return true;
}

std::vector<CandidatePipeline> pipeline_candidates(const ServingProblem& problem, const ModelToServe& model,
                                                   double building_requests_per_second) {
  return Enumeration(problem, model, building_requests_per_second).run();
}

bool has_times(const ServingProblem& problem, const ModelToServe& model) {
  return std::ranges::any_of(problem.classes, [&](const DeviceClass& device_class) {
    const auto shares = measured_shares(model.profile, device_class.name);
    return !shares.empty() && shares.front() <= problem.max_share;
  });
}

std::string why_no_candidate(const ServingProblem& problem, const ModelToServe& model) {
  if (!has_times(problem, model))
    return fmt::format("no profile of it was measured on {} of the cluster's classes",
                       problem.max_share == 1 ? "whole devices" : "devices");
  ServingProblem without_limits = problem;
  without_limits.memory_limit_bytes.clear();
  if (!pipeline_candidates(without_limits, model, 0).empty())
    return "the weights and working memory of its pools do not fit into the devices' memory limits";
  const Nanoseconds budget = latency_budget_ns(model.objective_ns, problem.margins);
  return fmt::format(
      "a single request takes at least {} on any pipeline of at most {} partitions, and the margin of {:.0f} % leaves "
      "{} of the objective of {}; try a longer one, a smaller margin or more partitions",
      format_duration(least_latency_ns(without_limits, model)), problem.max_partitions,
      100 * problem.margins.objective_fraction, format_duration(budget), format_duration(model.objective_ns));
}

}  // namespace frostpipe
