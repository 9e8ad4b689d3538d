#pragma once
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/memory.h"
#include "planner/make_plan.h"

namespace frostpipe {

/// One combination that best_phase looks at, complete but for its prediction.
struct Candidate {
  Phase phase;
  std::vector<RankMemory> memory;  // per pipeline position
  Bytes missing_bytes = 0;         // sum over the ranks that do not fit; 0 = fits, or limits are ignored
};

/// Makes the candidates of one pipeline length and one frozen prefix.
class CandidateMaker {
 public:
  CandidateMaker(const Profile& profile, const Cluster& cluster, const PlanOptions& options, int pipeline_parallel_size,
                 int first_trainable_layer, const CacheUse& cache);

  /// Largest number of micro-batches worth trying: min(32, global batch / d), at least 1.
  int max_micro_batches() const;

  /// Infeasible only if the partitioner leaves a stage empty; a candidate that does not fit has missing_bytes > 0.
  std::variant<Candidate, Infeasible> make(std::string_view schedule, int num_micro_batches);

  /// `phase` as it is, with what it needs.
  Candidate with_memory(Phase phase) const;

 private:
  std::variant<Partition, Infeasible> first_partition(int num_micro_batches);
  std::vector<Nanoseconds> cost_per_layer(int num_micro_batches);
  const std::vector<LayerCost>& layers_at(int micro_batch_size);
  /// False where weights, gradients and optimizer state alone, which no cut changes, exceed what one pipeline's ranks have together.
  bool may_fit_somewhere(const Candidate& candidate) const;
  /// Shifts cuts by one layer while fewer bytes are missing.
  Candidate shifted_until_it_fits(Candidate candidate) const;

  const Profile& profile_;
  const Cluster& cluster_;
  const PlanOptions& options_;
  Phase frame_;                                      // what all candidates share
  std::vector<Nanoseconds> update_ns_;               // per layer
  std::map<int, std::vector<LayerCost>> layers_at_;  // by micro-batch size
};

/// Every partition that differs from this one by one cut, or up to 8 stages several neighbouring ones, shifted by one layer; no stage becomes
/// empty.
std::vector<Partition> neighbours(const Partition& partition);

/// Peak bytes of every rank of the world, 0 for idle ones.
std::vector<Bytes> peak_per_rank(const Phase& phase, const std::vector<RankMemory>& memory, int world_size);

/// options.tokens, or the profile's workload where that is 0. Throws InvalidInput if there is neither.
int tokens_of(const PlanOptions& options, const Profile& profile);

}  // namespace frostpipe
