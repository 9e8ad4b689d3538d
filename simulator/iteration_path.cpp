#include "simulator/iteration_path.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/fast_path_pass.h"

namespace frostpipe {
namespace {

constexpr int kBeginning = -1;  // the node of a path without actions

/// A record that adds up times and follows the path of every runner, message and link. Paths share their beginnings, so
/// each is stored as the number of its last node.
class TracedTimes : public Times {
 public:
  TracedTimes(const Schedule& schedule, const std::vector<PipelineRankProgram>& programs,
              const std::vector<FastRunner>& runners)
      : Times(programs, runners, kTracedIterations),
        schedule_(schedule),
        of_runner_(runners.size(), kBeginning),
        of_link_(runners.size()),
        of_message_(num_messages(programs) * runners.size() / programs.size(), kBeginning) {
    for (std::size_t index = 0; index < runners.size(); ++index)
      of_link_[index].assign(runners[index].links.size(), kBeginning);
  }

  void extend(int index, const FastRunner& runner, int part) { append(of_runner_[index], runner, part); }
  void send(int index, const FastRunner& runner, const Step& step, std::size_t message, bool waits) {
    int& link = of_link_[index][step.link];
    if (!waits) link = of_runner_[index];
    append(link, runner, kOccupancy);
    append(of_message_[message] = link, runner, kLatency);
  }
  void transfer(int last, const FastRunner& sender, std::size_t message) {
    int& path = of_message_[message] = of_runner_[last];
    append(path, sender, kOccupancy);
    append(path, sender, kLatency);
  }
  void wait_for(int index, std::size_t message) { of_runner_[index] = of_message_[message]; }
  void run_collective(const FastCollective& collective, const FastRunner& longest, const Action& action) {
    int path = of_runner_[collective.last];
    append(path, longest, static_cast<int>(longest.next_segment));
    if (action.kind == ActionKind::optimizer_step) {
      all_reduce_norm_ = all_reduce_norm_ && collective.arrived.size() == of_runner_.size();
      if (longest.iteration == 0) {
        path = kBeginning;
      } else {
        end_ = path;
      }
    }
    for (const int member : collective.arrived) of_runner_[member] = path;
  }

  std::vector<PathPart> path() const {
    std::vector<PathPart> parts;
    if (!all_reduce_norm_) return parts;
    for (int node = end_; node != kBeginning; node = nodes_[node].before) {
      const Node& of = nodes_[node];
      parts.push_back({.action = schedule_.body[of.pipeline_rank][of.next],
                       .pipeline_rank = of.pipeline_rank,
                       .replica = of.replica,
                       .part = of.part});
    }
    return parts;
  }

 private:
  struct Node {
    int before = kBeginning;
    int pipeline_rank = 0, replica = 0;
    int next = 0;  // index into the list
    int part = 0;
  };

  void append(int& path, const FastRunner& runner, int part) {
    nodes_.push_back({.before = path,
                      .pipeline_rank = runner.pipeline_rank,
                      .replica = runner.replica,
                      .next = static_cast<int>(runner.next),
                      .part = part});
    path = static_cast<int>(nodes_.size()) - 1;
  }

  const Schedule& schedule_;
  std::vector<int> of_runner_;
  std::vector<std::vector<int>> of_link_;  // by runner
  std::vector<int> of_message_;
  std::vector<Node> nodes_;
  bool all_reduce_norm_ = true;
  int end_ = kBeginning;  // of the path to the last gradient norm
};

Nanoseconds duration_ns(const PathPart& one, const CostModel& costs) {
  if (one.part == kCompute) return costs.compute_ns(one.action, one.pipeline_rank, one.replica);
  if (one.part >= 0) {
    const std::vector<Segment> segments = costs.segments(one.action, one.pipeline_rank, one.replica);
    return one.part < static_cast<int>(segments.size()) ? segments[one.part].duration_ns : 0;
  }
  const TransferCost cost = costs.transfer(one.action, one.replica);
  return one.part == kOccupancy ? cost.occupancy_ns : cost.latency_ns;
}

}  // namespace

IterationPath::IterationPath(const std::vector<PathPart>& parts, const CostModel& costs,
                             const std::function<int(const Action&, int replica)>& size_of) {
  using Key = std::tuple<int, ActionKind, int, int, int, int, int>;
  std::map<Key, Counted> counted;  // stages ascend
  for (const PathPart& one : parts) {
    const int size = one.action.micro_batch ? size_of(one.action, one.replica) : 0;
    Counted& known = counted[{one.action.stage, one.action.kind, one.action.slice.value_or(0), size, one.pipeline_rank,
                              one.replica, one.part}];
    known.part = one;
    ++known.count;
  }
  for (const auto& [key, known] : counted) {
    const int stage = known.part.action.stage;
    stages_.resize(std::max(stages_.size(), stage + std::size_t{1}));
    stages_[stage].parts.push_back(known);
  }
  for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) price(stage, costs);
}

void IterationPath::price(int stage, const CostModel& costs) {
  if (stage >= static_cast<int>(stages_.size())) return;
  StageParts& parts = stages_[stage];
  length_ns_ -= parts.sum_ns;
  parts.sum_ns = 0;
  for (const auto& [of, count] : parts.parts) parts.sum_ns += count * duration_ns(of, costs);
  length_ns_ += parts.sum_ns;
}

std::optional<TracedTiming> trace_on_fast_path(const Schedule& lowered,
                                               const std::vector<PipelineRankProgram>& programs,
                                               const ParallelLayout& layout, const CostModel& costs) {
  std::vector<FastRunner> runners = runners_of(programs, layout);
  TracedTimes times(lowered, programs, runners);
  if (!FastPass<TracedTimes>(lowered, programs, costs, kTracedIterations, runners, times).run()) return std::nullopt;
  return TracedTiming{.timing = times.take(), .path = times.path()};
}

}  // namespace frostpipe
