#pragma once
#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// What freezing the embedding, and nothing else, is expected to bring.
struct EmbeddingFreeze {
  double parameter_share = 0;             // of the model's parameters, those of the embedding
  Nanoseconds baseline_iteration_ns = 0;  // of the plan's first phase as it is
  Nanoseconds iteration_ns = 0;           // of the best phase on the same ranks and by the same schedule with the
                                          // embedding frozen
  bool operator==(const EmbeddingFreeze&) const = default;
};

/// In the plan's first phase, at `tokens` per sample; 0 = as planned. Where no phase with the embedding frozen fits,
/// the first phase itself is taken, with its embedding frozen.
EmbeddingFreeze freeze_embedding_alone(const TrainingPlan& plan, int tokens, const Profile& profile,
                                       const Cluster& cluster);

}  // namespace frostpipe
