#include "simulator/fast_path.h"

#include <algorithm>
#include <utility>

#include "simulator/fast_path_pass.h"

namespace frostpipe {
namespace {

/// A record of a span for every action; ranks ascend.
class Spans : public NoPaths {
 public:
  Spans(const Schedule& schedule, const std::vector<FastRunner>& runners, int iterations)
      : schedule_(schedule), next_(runners.size()) {
    std::vector<int> by_rank(runners.size());
    for (std::size_t i = 0; i < by_rank.size(); ++i) by_rank[i] = static_cast<int>(i);
    std::sort(by_rank.begin(), by_rank.end(), [&](int a, int b) { return runners[a].rank < runners[b].rank; });
    std::size_t num_spans = 0;
    for (const int index : by_rank) {
      next_[index] = num_spans;
      num_spans += schedule.body[runners[index].pipeline_rank].size() * iterations;
    }
    trace_.num_ranks = runners[by_rank.back()].rank + 1;
    trace_.spans.resize(num_spans);
  }
  void add(int index, const FastRunner& runner, Nanoseconds begin, Nanoseconds end) {
    trace_.spans[next_[index]++] = {runner.rank, runner.iteration, schedule_.body[runner.pipeline_rank][runner.next],
                                    begin, end};
  }
  Trace take() { return std::move(trace_); }

 private:
  const Schedule& schedule_;
  std::vector<std::size_t> next_;
  Trace trace_;
};

}  // namespace

std::optional<Trace> simulate_on_fast_path(const Schedule& lowered, const ParallelLayout& layout,
                                           const CostModel& costs, int iterations) {
  const auto programs = pipeline_rank_programs(lowered);
  if (!programs) return std::nullopt;
  std::vector<FastRunner> runners = runners_of(*programs, layout);
  Spans spans(lowered, runners, iterations);
  if (!FastPass<Spans>(lowered, *programs, costs, iterations, runners, spans).run()) return std::nullopt;
  return spans.take();
}

std::optional<Timing> time_on_fast_path(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs,
                                        int iterations) {
  const auto programs = pipeline_rank_programs(lowered);
  if (!programs) return std::nullopt;
  return time_on_fast_path(lowered, *programs, layout, costs, iterations);
}

std::optional<Timing> time_on_fast_path(const Schedule& lowered, const std::vector<PipelineRankProgram>& programs,
                                        const ParallelLayout& layout, const CostModel& costs, int iterations) {
  std::vector<FastRunner> runners = runners_of(programs, layout);
  Times times(programs, runners, iterations);
  if (!FastPass<Times>(lowered, programs, costs, iterations, runners, times).run()) return std::nullopt;
  return times.take();
}

}  // namespace frostpipe
