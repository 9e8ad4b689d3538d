#include "operators/planner/local_search.h"

#include <algorithm>

#include "base/portable_random.h"

namespace frostpipe {
namespace {

/// Operators of a layer that are moved together.
enum class Group { forward, backward, weight_gradient, all, one };
constexpr int kNumGroups = 5;

constexpr int kLateTrials = 10;

constexpr int kMaxSubsetDevices = 4;  // for more devices, only the fastest ones are tried together

Group group_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::forward:
    case OperatorKind::statistics:
    case OperatorKind::normalise:
    case OperatorKind::elementwise:
      return Group::forward;
    case OperatorKind::weight_gradient:
    case OperatorKind::update:
    case OperatorKind::norm_update:
      return Group::weight_gradient;
    default:
      return Group::backward;
  }
}

/// Returns the splits to try, each in proportion to the devices' speeds: over every device alone, and over every subset
/// of the devices or, if there are more than kMaxSubsetDevices, over the fastest 2, 3, ... of them.
std::vector<std::vector<OperatorRange>> candidates_of(const OperatorProblem& problem) {
  const auto speeds = speeds_of(problem);
  const int count = static_cast<int>(speeds.size());
  std::vector<std::vector<OperatorRange>> candidates;
  const auto add = [&](const std::vector<int>& devices) {
    auto ranges = ranges_over(problem, devices, speeds);
    if (std::ranges::find(candidates, ranges) == candidates.end()) candidates.push_back(std::move(ranges));
  };
  for (int device = 0; device < count; ++device) add({device});
  if (count <= kMaxSubsetDevices) {
    for (unsigned set = 1; set < 1U << count; ++set) {
      std::vector<int> devices;
      for (int device = 0; device < count; ++device)
        if (set >> device & 1) devices.push_back(device);
      add(devices);
    }
    return candidates;
  }
  std::vector<int> fastest(count);
  for (int device = 0; device < count; ++device) fastest[device] = device;
  std::ranges::stable_sort(fastest, [&](int a, int b) { return speeds[a] > speeds[b]; });
  for (int size = 2; size <= count; ++size) {
    std::vector<int> devices(fastest.begin(), fastest.begin() + size);
    std::ranges::sort(devices);
    add(devices);
  }
  return candidates;
}

class Search {
 public:
  Search(const OperatorProblem& problem, std::uint64_t seed)
      : problem_(problem), random_(seed), candidates_(candidates_of(problem)), operators_(num_layers(problem.graph)) {
    for (std::size_t op = 0; op < problem.graph.operators.size(); ++op) {
      const Operator& one = problem.graph.operators[op];
      if (!is_split_by_samples(one.kind)) continue;
      movable_.push_back(static_cast<int>(op));
      operators_[one.layer].push_back(static_cast<int>(op));
    }
  }

  ScheduledPlacement changed(ScheduledPlacement from) {
    if (movable_.empty()) return from;
    if (random_.below(8) == 0) {
      const int count = static_cast<int>(from.places.size());
      std::swap(from.places[random_.below(count)], from.places[random_.below(count)]);
      return from;
    }
    change(from.placement, some_operators());
    return from;
  }

 private:
  /// Returns one operator, or those of a group in neighbouring layers: in four layers on average, or in all from a
  /// layer on.
  std::vector<int> some_operators() {
    const auto group = static_cast<Group>(random_.below(kNumGroups));
    if (group == Group::one) return {movable_[random_.below(static_cast<int>(movable_.size()))]};
    const int layers = static_cast<int>(operators_.size());
    const int first = random_.below(layers);
    int end = first + 1;
    while (end < layers && random_.below(4) > 0) ++end;
    if (random_.below(8) == 0) end = layers;
    std::vector<int> chosen;
    for (int layer = first; layer < end; ++layer)
      for (const int op : operators_[layer])
        if (group == Group::all || group_of(problem_.graph.operators[op].kind) == group) chosen.push_back(op);
    return chosen;
  }

  /// Gives all these operators the same ranges: a candidate's, those of another operator, or those of the first of them
  /// with one boundary shifted.
  void change(OperatorPlacement& placement, const std::vector<int>& operators) {
    if (operators.empty()) return;
    std::vector<OperatorRange> ranges;
    const int way = random_.below(4);
    if (way == 0) {
      ranges = placement[movable_[random_.below(static_cast<int>(movable_.size()))]];
    } else if (way == 1) {
      ranges = placement[operators.front()];
      shift_boundary(ranges);
    } else {
      ranges = candidates_[random_.below(static_cast<int>(candidates_.size()))];
    }
    for (const int op : operators) placement[op] = ranges;
  }

  void shift_boundary(std::vector<OperatorRange>& ranges) {
    if (ranges.size() < 2) return;
    const int left = random_.below(static_cast<int>(ranges.size()) - 1);
    const int room = ranges[left + 1].end - ranges[left].begin;
    const int most = std::max(1, room / 8);
    const int shifted = ranges[left].end + (random_.below(2) == 0 ? 1 : -1) * (1 + random_.below(most));
    if (shifted <= ranges[left].begin || shifted >= ranges[left + 1].end) return;
    ranges[left].end = ranges[left + 1].begin = shifted;
  }

  const OperatorProblem& problem_;
  PortableRandom random_;
  std::vector<std::vector<OperatorRange>> candidates_;
  std::vector<int> movable_;
  std::vector<std::vector<int>> operators_;  // by layer
};

}  // namespace

ScheduledPlacement scheduled(const OperatorProblem& problem, OperatorPlacement placement, std::vector<int> places) {
  const auto tasks = tasks_of(problem.graph, problem.machine, placement);
  const Nanoseconds makespan_ns = run_by_priority(tasks, problem.machine, places).makespan_ns;
  return {.placement = std::move(placement), .places = std::move(places), .makespan_ns = makespan_ns};
}

ScheduledPlacement improved(const OperatorProblem& problem, ScheduledPlacement start, const OperatorSearch& options,
                            Nanoseconds bound_ns) {
  Search search(problem, options.seed);
  ScheduledPlacement best = start, current = std::move(start);
  std::vector<Nanoseconds> before(kLateTrials, current.makespan_ns);
  for (int trial = 0; trial < options.num_trials && best.makespan_ns > bound_ns; ++trial) {
    auto next = search.changed(current);
    auto one = scheduled(problem, std::move(next.placement), std::move(next.places));
    Nanoseconds& late_ns = before[trial % kLateTrials];
    if (one.makespan_ns <= std::max(current.makespan_ns, late_ns)) current = std::move(one);
    late_ns = current.makespan_ns;
    if (current.makespan_ns < best.makespan_ns) best = current;
  }
  return best;
}

}  // namespace frostpipe
