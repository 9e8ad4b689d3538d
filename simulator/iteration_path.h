#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "plan/layout.h"
#include "simulator/cost_model.h"
#include "simulator/fast_path.h"
#include "simulator/pipeline_rank_program.h"

namespace frostpipe {

/// A part of an action: its compute, the occupancy or the latency of its message, or one of its segments.
struct PathPart {
  Action action;
  int pipeline_rank = 0, replica = 0;
  int part = 0;  // kCompute, kOccupancy, kLatency (fast_path_pass.h), or the index of a segment
};

/// The critical path of an iteration: a longest chain of actions, each of which waits for the one before, from the
/// gradient norm that ends one iteration to that of the next. It takes as long as the iteration. Schedule and layout
/// fix the order of actions, so with other costs an iteration takes at least as long as the same chain does then.
class IterationPath {
 public:
  /// Prices the path. `size_of` returns the samples of a micro-batch: parts of one stage, kind and size cost the same.
  IterationPath(const std::vector<PathPart>& parts, const CostModel& costs,
                const std::function<int(const Action&, int replica)>& size_of);
  /// Returns the path's length, with the costs by which it was priced.
  Nanoseconds length_ns() const { return length_ns_; }
  /// Prices a stage again after its costs have changed.
  void price(int stage, const CostModel& costs);

 private:
  struct Counted {
    PathPart part;
    int count = 0;
  };
  struct StageParts {
    std::vector<Counted> parts;
    Nanoseconds sum_ns = 0;
  };
  std::vector<StageParts> stages_;
  Nanoseconds length_ns_ = 0;
};

constexpr int kTracedIterations = 2;

/// The times of a simulation, and the critical path of its second iteration.
struct TracedTiming {
  Timing timing;
  std::vector<PathPart> path;  // empty unless all ranks reduce a gradient norm between the iterations
};

/// Does the same as time_on_fast_path for kTracedIterations iterations, and finds the critical path. Returns none if
/// ranks wait forever.
std::optional<TracedTiming> trace_on_fast_path(const Schedule& lowered,
                                               const std::vector<PipelineRankProgram>& programs,
                                               const ParallelLayout& layout, const CostModel& costs);

}  // namespace frostpipe
