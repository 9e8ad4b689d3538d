#include "planner/search/speed_weights.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace frostpipe {
namespace {

/// The pipeline ranks whose work is equal.
struct EqualRanks {
  std::vector<double> work;  // by layer
  int count = 0;
  double weight = 1;
};

/// Sets the weight of one group to the one at which the weighted work, divided by the sum of the weights of all ranks,
/// is largest while the other groups keep theirs. The quotient is largest where this group and another one are equally
/// good at some layer.
void set_best_weight(std::vector<EqualRanks>& groups, EqualRanks& group) {
  double others = 0, others_work = 0, own_work = 0;
  for (const EqualRanks& other : groups)
    if (&other != &group) others += other.count * other.weight;
  struct Layer {
    double equal_at = 0, others = 0, own = 0;  // weight at which both are equal; the others' weighted work; own work
  };
  std::vector<Layer> layers;
  for (std::size_t layer = 0; layer < group.work.size(); ++layer) {
    double least = std::numeric_limits<double>::max();
    for (const EqualRanks& other : groups)
      if (&other != &group) least = std::min(least, other.weight * other.work[layer]);
    if (group.work[layer] <= 0 || least <= 0) continue;  // the weighted work is 0 at any weight
    layers.push_back({least / group.work[layer], least, group.work[layer]});
    own_work += group.work[layer];
  }
  std::ranges::sort(layers, {}, &Layer::equal_at);
  double best = 0;
  for (const Layer& layer : layers) {  // those before it are cheaper on the other groups
    own_work -= layer.own;
    others_work += layer.others;
    const double share =
        (others_work + std::max(0.0, own_work) * layer.equal_at) / (others + group.count * layer.equal_at);
    if (share > best) {
      best = share;
      group.weight = layer.equal_at;
    }
  }
}

}  // namespace

std::vector<double> weights_by_speed(const PhaseWork& work) {
  std::vector<EqualRanks> groups;
  std::map<const WorkByLayer*, std::size_t> group_of;
  for (const auto* const of_rank : work.of_rank) {
    const auto [known, is_new] = group_of.try_emplace(&of_rank->second, groups.size());
    if (is_new) groups.push_back({.work = {of_rank->second.all.begin(), of_rank->second.all.end()}});
    ++groups[known->second].count;
  }
  if (groups.size() < 2) return {};
  const auto all_of = [](const auto& values) {
    return std::max(1.0, static_cast<double>(std::accumulate(values.begin(), values.end(), 0.0)));
  };
  for (EqualRanks& group : groups) group.weight = all_of(work.least) / all_of(group.work);
  const int rounds = groups.size() == 2 ? 1 : 4;  // one is exact for two groups
  for (int round = 0; round < rounds; ++round)
    for (std::size_t group = 1; group < groups.size(); ++group) set_best_weight(groups, groups[group]);
  const double largest = std::ranges::max(groups, {}, &EqualRanks::weight).weight;
  std::vector<double> weights;
  for (const auto* const of_rank : work.of_rank)
    weights.push_back(groups[group_of.at(&of_rank->second)].weight / largest);
  return weights;
}

}  // namespace frostpipe
