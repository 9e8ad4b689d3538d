#include <optional>
#include <string>
#include <utility>

#include "planner/candidate.h"
#include "planner/make_plan.h"
#include "profiles/error.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

/// 1F1B first: where both take equally long it needs less memory.
std::vector<std::string_view> schedules_for(int pipeline_parallel_size, const std::string& only) {
  if (!only.empty()) return {only};
  if (pipeline_parallel_size == 1) return {"1F1B"};  // GPipe would only keep more activations
  return {"1F1B", "GPipe"};
}

constexpr std::size_t kShiftedCandidates = 2;

/// Why nothing fitted: the candidate that lacked the fewest bytes.
struct ClosestMiss {
  Bytes missing_bytes = 0;
  std::string reason;
};

class Search {
 public:
  Search(const Profile& profile, const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size,
         int first_trainable_layer, const CacheUse& cache)
      : profile_(profile),
        cluster_(cluster),
        options_(options),
        maker_(profile, cluster, options, pipeline_parallel_size, first_trainable_layer, cache) {}

  void consider_all(int pipeline_parallel_size) {
    for (const std::string_view schedule : schedules_for(pipeline_parallel_size, options_.schedule)) {
      for (int m = 1; m <= maker_.max_micro_batches(); ++m) {
        try {
          consider(schedule, m);
        } catch (const InvalidInput& error) {  // this micro-batch size was not measured; others may be
          if (!not_measured_) not_measured_ = error;
        }
      }
    }
  }

  /// Shifts the cuts of the best few candidates one layer at a time while that is faster by the simulator and still fits.
  void shift_cuts_of_best() {
    std::sort(feasible_.begin(), feasible_.end(), [](const Phase& a, const Phase& b) { return a.predicted.iteration_ns < b.predicted.iteration_ns; });
    feasible_.resize(std::min(feasible_.size(), kShiftedCandidates));
    for (Phase current : std::exchange(feasible_, {})) {
      for (bool better = true; better;) {
        better = false;
        for (Partition& partition : neighbours(current.partition)) {
          Phase phase = current;
          phase.partition = std::move(partition);
          const Candidate shifted = maker_.with_memory(std::move(phase));
          if (shifted.missing_bytes > 0) continue;
          Phase next = predicted(shifted);
          if (next.predicted.iteration_ns >= current.predicted.iteration_ns) continue;
          current = std::move(next);
          better = true;
        }
      }
      keep_if_faster(std::move(current));
    }
  }

  std::variant<Phase, Infeasible> result() const {
    if (best_) return *best_;
    if (closest_) return Infeasible{closest_->reason};
    if (!empty_stage_.empty()) return Infeasible{empty_stage_};
    throw not_measured_.value();
  }

 private:
  void consider(std::string_view schedule, int num_micro_batches) {
    const auto made = maker_.make(schedule, num_micro_batches);
    if (const auto* none = std::get_if<Infeasible>(&made)) {
      empty_stage_ = none->reason;
      return;
    }
    const Candidate& candidate = std::get<Candidate>(made);
    if (candidate.missing_bytes == 0) {
      feasible_.push_back(predicted(candidate));
      keep_if_faster(feasible_.back());
    } else if (!closest_ || candidate.missing_bytes < closest_->missing_bytes) {
      closest_ = {.missing_bytes = candidate.missing_bytes, .reason = miss_of(candidate)};
    }
  }

  void keep_if_faster(Phase phase) {
    if (best_ && best_->predicted.iteration_ns <= phase.predicted.iteration_ns) return;
    best_ = std::move(phase);
  }

  Phase predicted(const Candidate& candidate) const {
    Phase phase = candidate.phase;
    phase.predicted = {.iteration_ns = simulated_iteration_ns(phase, options_.global_batch_size, options_.optimizer, options_.dtype, profile_, cluster_),
                       .transformation_ns = 0,
                       .peak_memory_bytes = peak_per_rank(phase, candidate.memory, static_cast<int>(cluster_.devices.size()))};
    return phase;
  }

  std::string miss_of(const Candidate& candidate) const {
    const Phase& phase = candidate.phase;
    return what_does_not_fit(phase, candidate.memory, cluster_) + " (" + phase.schedule +
           ", m = " + std::to_string(phase.num_micro_batches) + ", " + to_string(phase.partition) + ")";
  }

  const Profile& profile_;
  const Cluster& cluster_;
  const PlanOptions& options_;
  CandidateMaker maker_;
  std::vector<Phase> feasible_;  // with their predictions
  std::optional<Phase> best_;
  std::optional<ClosestMiss> closest_;
  std::string empty_stage_;
  std::optional<InvalidInput> not_measured_;
};

}  // namespace

std::variant<Phase, Infeasible> best_phase(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                           int pipeline_parallel_size, int first_trainable_layer, const CacheUse& cache) {
  const int p = pipeline_parallel_size;
  const int world_size = static_cast<int>(cluster.devices.size());
  const int num_layers = static_cast<int>(profile.model.layers.size());
  const std::string prefix = "p = " + std::to_string(p) + ": ";
  if (p < 1) throw InvalidInput("pipeline length", "must be >= 1", std::to_string(p));
  if (p * options.tensor_parallel_size > world_size) return Infeasible{prefix + "the cluster has " + std::to_string(world_size) + " ranks"};
  if (p > num_layers) return Infeasible{prefix + "the model has " + std::to_string(num_layers) + " layers"};

  Search search(profile, cluster, options, p, first_trainable_layer, cache);
  search.consider_all(p);
  if (options.partitioner == "exact") search.shift_cuts_of_best();
  auto result = search.result();
  if (auto* none = std::get_if<Infeasible>(&result)) none->reason.insert(0, prefix);
  return result;
}

}  // namespace frostpipe
